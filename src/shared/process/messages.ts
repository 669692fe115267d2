// The messages between supervisor and worker: one union for each direction.
import type { RequestOwner } from '../clients/caller.ts';
import type { Sections } from '../config/config.ts';
import type { SectionCredentials } from '../config/credentials.ts';
import type { NamedBySection } from '../named/load-sections.ts';
import type { Snapshot } from '../observe/metrics.ts';
import type { CountedStatements, StatementsReport } from '../observe/statement-sums.ts';
import type {
  LiveRequests,
  RecentError,
  RequestList,
  ServerVerdict,
  Stats,
} from '../observe/stats.ts';
import type { PrimaryMemory } from '../servers/primary-memory.ts';
import type { Answer, Call } from './calls.ts';
import type { EndedName, Ending } from './commit-endings.ts';
import type { ExitCode } from './exit-codes.ts';

/** The descriptor of the inherited listening socket in a worker, after stdio and the channel. */
export const inheritedSocket = 4;

/** The section's log file, or stderr when the supervisor runs in the foreground. */
export type LogDestination = 'file' | 'stderr';

/** The requests that are to end. */
export type KillWish = {
  /** The number of a request in the instance, or the `X-Request-ID` of some. */
  readonly id: string;
  /** The owner of the requests with that `X-Request-ID`. */
  readonly owner: RequestOwner;
  /** Whether the number may be that of another owner's request. */
  readonly mayEndOthers: boolean;
};

/** The requests of one worker that are to end: one by its number in the worker, or some by their `X-Request-ID`. */
export type KilledRequests =
  | {
      readonly by: 'number';
      readonly number: number;
      /** Null: it may be anyone's. */
      readonly owner: RequestOwner | null;
    }
  | { readonly by: 'request id'; readonly requestId: string; readonly owner: RequestOwner };

/** The requests of the supervisor to a worker. */
export type WorkerCalls = {
  /** Sends a report at once, before the answer. */
  readonly report: { readonly asked: null; readonly answer: true };
  /** The requests that it is answering now: those of an owner; null: all. */
  readonly requests: { readonly asked: RequestOwner | null; readonly answer: LiveRequests };
  /** Ends requests of its own. */
  readonly kill: { readonly asked: KilledRequests; readonly answer: { readonly isFound: boolean } };
};

/** The requests of a worker to the supervisor. */
export type SupervisorCalls = {
  /** All workers' metrics as Prometheus text. */
  readonly metrics: { readonly asked: null; readonly answer: string };
  readonly stats: { readonly asked: null; readonly answer: Stats };
  /** The requests that all workers are answering now: those of an owner; null: all. */
  readonly requests: { readonly asked: RequestOwner | null; readonly answer: RequestList };
  /** The cost of the statements of all workers. */
  readonly statements: { readonly asked: null; readonly answer: CountedStatements };
  /** Ends a request, by its number in the instance, or all of an owner with the same request id. */
  readonly kill: { readonly asked: KillWish; readonly answer: { readonly isFound: boolean } };
  /** Remembers that COMMIT was sent for a transaction, and then how it ended, even if the worker dies. */
  readonly noteCommit: {
    readonly asked: { readonly name: EndedName; readonly ending: Ending };
    readonly answer: true;
  };
  /** How a transaction ended whose worker is gone. */
  readonly endingOfCommit: { readonly asked: EndedName; readonly answer: Ending };
  /** Replaces the memory of a section's primary, unless it has changed meanwhile. */
  readonly proposePrimary: {
    readonly asked: {
      readonly section: string;
      /** The version that the proposal was made from. Null: there was none. */
      readonly base: number | null;
      /** Its version is the next one. */
      readonly memory: PrimaryMemory;
    };
    /** The memory that is in force now. If the proposal is accepted, it is on the disk and has been sent to all workers. */
    readonly answer: { readonly isAccepted: boolean; readonly memory: PrimaryMemory | null };
  };
  /**
   * Reads `jwt_keys` again for an unknown `kid`, at most every ten seconds. New keys have been sent to all workers with `renew` before the
   * answer. `isRead` false: the file was not read, because that was done just before.
   */
  readonly rereadKeys: { readonly asked: null; readonly answer: { readonly isRead: boolean } };
};

/** The report of a worker, each second and on request. */
export type WorkerReport = {
  readonly snapshot: Snapshot;
  /** The errors since the last report. */
  readonly errors: readonly RecentError[];
  /** Its verdict on each of several servers. A section's only server has none. */
  readonly verdicts: readonly ServerVerdict[];
  /** The cost of each statement since the last report. Null: none ran. */
  readonly statements: StatementsReport | null;
};

/** The contents of files that were read again, which take effect together. Null: what is in force remains. */
export type Renewed = {
  readonly credentials: SectionCredentials | null;
  readonly named: NamedBySection | null;
};

/** From the supervisor to one worker. */
export type ToWorker =
  | {
      readonly kind: 'boot';
      readonly sections: Sections;
      readonly slot: number;
      readonly logTo: LogDestination;
      /** The instance's key in base64, which signs the tokens of transactions that clients hold. */
      readonly transactionKey: string;
      /** The remembered primaries by section. A section without one is missing. */
      readonly primaries: Readonly<Record<string, PrimaryMemory>>;
      readonly named: NamedBySection;
    }
  /** Close the listener, confirm, finish what is in flight, exit. `socketStays`: the socket is inherited and outlives the instance. */
  | { readonly kind: 'drain'; readonly socketStays: boolean }
  /** Exit at once: kill what runs in MySQL, and log each write whose outcome is unknown. */
  | { readonly kind: 'stop now' }
  | { readonly kind: 'reopen logs' }
  | ({ readonly kind: 'renew' } & Renewed)
  /** A statement through another worker may have changed tables. */
  | { readonly kind: 'tables changed' }
  /** Another memory of a section's primary is in force from now on. */
  | { readonly kind: 'primary memory'; readonly section: string; readonly memory: PrimaryMemory }
  | { readonly kind: 'ping'; readonly sequence: number }
  | Call<WorkerCalls>
  | Answer<SupervisorCalls>;

/** From one worker to the supervisor. */
export type ToSupervisor =
  /** `build`: the code that it runs. */
  | { readonly kind: 'ready'; readonly build: string }
  | { readonly kind: 'listening' }
  /** The listener is closed, and no new request will come. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode; readonly reason: string }
  | { readonly kind: 'tables changed' }
  | { readonly kind: 'pong'; readonly sequence: number }
  | { readonly kind: 'report'; readonly report: WorkerReport }
  | Call<SupervisorCalls>
  | Answer<WorkerCalls>;
