// What supervisor and worker say to each other: one union each way.
// Must not know how either side acts on it.
import type { Sections } from '../config/config.ts';
import type { SectionCredentials } from '../config/credentials.ts';
import type { Snapshot } from '../observe/metrics.ts';
import type { StatementsReport, ToldStatements } from '../observe/statement-sums.ts';
import type {
  LiveRequests,
  RecentError,
  ServerVerdict,
  Stats,
  ToldRequests,
} from '../observe/stats.ts';
import type { PrimaryMemory } from '../servers/primary-memory.ts';
import type { Answer, Call } from './calls.ts';
import type { EndedName, Ending } from './commit-endings.ts';
import type { ExitCode } from './exit-codes.ts';

/** The descriptor under which a worker inherits the listening socket: after stdio and the channel. */
export const inheritedSocket = 4;

/** The section's log file, or stderr when the supervisor runs in the foreground. */
export type LogDestination = 'file' | 'stderr';

/** What the supervisor asks a worker. */
export type WorkerCalls = {
  /** Reports at once; the report comes before the answer. */
  readonly report: { readonly asked: null; readonly answer: true };
  /** What it is answering now. */
  readonly requests: { readonly asked: null; readonly answer: LiveRequests };
  /** Ends one of its requests, by its number there. */
  readonly kill: { readonly asked: number; readonly answer: { readonly isFound: boolean } };
};

/** What a worker asks the supervisor. */
export type SupervisorCalls = {
  /** All workers' metrics as Prometheus text. */
  readonly metrics: { readonly asked: null; readonly answer: string };
  readonly stats: { readonly asked: null; readonly answer: Stats };
  /** What all workers are answering now. */
  readonly requests: { readonly asked: null; readonly answer: ToldRequests };
  /** What all workers' statements have cost. */
  readonly statements: { readonly asked: null; readonly answer: ToldStatements };
  /** Ends one of those requests, by its number in the instance. */
  readonly kill: { readonly asked: string; readonly answer: { readonly isFound: boolean } };
  /** Remembers that COMMIT is on its way for a transaction, and what became of it, whatever becomes of its worker. */
  readonly noteCommit: {
    readonly asked: { readonly name: EndedName; readonly ending: Ending };
    readonly answer: true;
  };
  /** How a transaction has ended whose worker is gone. */
  readonly endingOfCommit: { readonly asked: EndedName; readonly answer: Ending };
  /** Changes what is remembered of a section's primary, if nothing has changed it meanwhile. */
  readonly proposePrimary: {
    readonly asked: {
      readonly section: string;
      /** The version that the proposal was made from; null: there was none. */
      readonly base: number | null;
      /** Its version is the next one. */
      readonly memory: PrimaryMemory;
    };
    /** With the memory that is in force now. If the proposal is accepted, that is on the disk, and all workers have been sent it. */
    readonly answer: { readonly isAccepted: boolean; readonly memory: PrimaryMemory | null };
  };
};

/** What a worker has to tell each second, and whenever it is asked for. */
export type WorkerReport = {
  readonly snapshot: Snapshot;
  /** Since the last report. */
  readonly errors: readonly RecentError[];
  /** What it makes of each of several servers; nothing of a section's only one. */
  readonly verdicts: readonly ServerVerdict[];
  /** What has come to each statement since the last report; null: nothing. */
  readonly statements: StatementsReport | null;
};

/** From the supervisor to one worker. */
export type ToWorker =
  | {
      readonly kind: 'boot';
      readonly sections: Sections;
      readonly slot: number;
      readonly logTo: LogDestination;
      /** Signs the tokens of transactions that clients hold, in base64: an instance's own. */
      readonly transactionKey: string;
      /** What is remembered of the primary, by section; a section without a memory is missing. */
      readonly primaries: Readonly<Record<string, PrimaryMemory>>;
    }
  /** Close the listener, confirm, finish what is in flight, end. `socketStays`: somebody else's socket outlives the instance. */
  | { readonly kind: 'drain'; readonly socketStays: boolean }
  /** End at once: kill what runs in MySQL, log each write whose outcome is unknown, exit. */
  | { readonly kind: 'stop now' }
  | { readonly kind: 'reopen logs' }
  | { readonly kind: 'renew'; readonly credentials: SectionCredentials }
  /** Tables may have changed: a statement through another worker may have done it. */
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
  /** The listener is closed: nothing new will come. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode; readonly reason: string }
  | { readonly kind: 'tables changed' }
  | { readonly kind: 'pong'; readonly sequence: number }
  | { readonly kind: 'report'; readonly report: WorkerReport }
  | Call<SupervisorCalls>
  | Answer<WorkerCalls>;
