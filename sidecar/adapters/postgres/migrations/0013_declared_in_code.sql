-- Schedules declared in the app's code: a third source, with loads of its own beside those of the file.
ALTER TABLE baton.schedule DROP CONSTRAINT schedule_source_check;
ALTER TABLE baton.schedule ADD CONSTRAINT schedule_source_check CHECK (source IN ('config', 'api', 'code'));
ALTER TABLE baton.config_load ADD COLUMN source text NOT NULL DEFAULT 'config' CHECK (source IN ('config', 'code'));
