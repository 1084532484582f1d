/** Everything the sidecar offers, over one connection. */
import { Connection } from "./connection.js";
import { Deferreds } from "./deferreds.js";
import { Ids } from "./ids.js";
import { Jobs, type JobsHome } from "./jobs.js";
import { Leadership } from "./leadership.js";
import { Runs } from "./runs.js";
import { Schedules } from "./schedules.js";
import { Singletons } from "./singletons.js";
import { State } from "./state.js";
import { TokenFile } from "./tokens.js";

const API_ADDRESS = "127.0.0.1:9401";

/** Where the sidecar is. */
export interface ConnectOptions {
  /** `host:port` or `unix:///path`; else BATON_API_ADDRESS, else 127.0.0.1:9401. */
  readonly sidecar?: string | undefined;
  /** The token for the sidecar; else BATON_API_TOKEN_FILE, else none. */
  readonly apiTokenFile?: string | undefined;
}

/** The sidecar's services; usable once connected, from any pod, leader or not. */
export class Sidecar implements AsyncDisposable {
  protected readonly connection = new Connection();
  readonly state: State = new State(this.connection);
  readonly schedules = new Schedules(this.connection);
  readonly singletons = new Singletons(this.connection);
  readonly runs = new Runs(this.connection);
  readonly leadership = new Leadership(this.connection);
  readonly deferreds = new Deferreds(this.connection);
  readonly jobs = new Jobs(this.connection, this.jobsHome());
  readonly #ids = new Ids(this.connection);

  /** Connects, as a script does that only calls the sidecar; nothing is sent yet. */
  connect({ sidecar, apiTokenFile }: ConnectOptions = {}): this {
    const address = sidecar ?? (process.env.BATON_API_ADDRESS || API_ADDRESS);
    this.connection.open(address, TokenFile.at(apiTokenFile, "BATON_API_TOKEN_FILE"));
    return this;
  }

  /** What jobs that are submitted here get; nothing, unless an app registers handlers. */
  protected jobsHome(): JobsHome {
    return { defaultsOf: () => undefined, cluster: () => undefined };
  }

  /** A new id, unique across the cluster and above those this process was given before. */
  async nextId(): Promise<bigint> {
    return this.#ids.next();
  }

  /** Closes the connection; open calls are ended. */
  close(): Promise<void> {
    this.connection.shut();
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
