"""The worker lease: issues an Authority for jobs, and rescues what dead workers held."""
