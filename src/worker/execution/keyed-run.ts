// A batch with an Idempotency-Key: it waits for the lock of its key, tries again after each lost connection, and counts once.
import { performance } from 'node:perf_hooks';
import type { LostSession } from '../../shared/mysql/identity.ts';
import type { TableName } from '../../shared/sql/table-names.ts';
import type { TokenResult } from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import type { Control } from '../servers/pool/control.ts';
import { BatchRun } from './batch-run.ts';
import {
  type CreateRun,
  type Execution,
  type Launcher,
  type RunEnd,
  type RunEvents,
  type RunSink,
  succeeded,
} from './execution.ts';
import {
  type KeptRow,
  KeyAttempt,
  type KeyLock,
  type KeyOwner,
  type KeyStore,
} from './idempotency/key-store.ts';
import type { RunTimes } from './run-times.ts';
import { foundNoConnection } from './server-errors.ts';
import type { StopReason } from './stop-reason.ts';
import type { Writes } from './undoable-tables.ts';
import type { Batch, BatchKey } from './work.ts';

/**
 *     created ──> waiting ──> running ──────────────> ended
 *                               │  ^                    ^
 *                        lost   v  │ again              │
 *                               └──┴──> proving ────────┘
 */
type Phase = 'created' | 'waiting' | 'running' | 'proving' | 'ended';

/** Lost connections while the statements run: one of these may be what ends the server. Losses around COMMIT do not count. */
const maxLosses = 3;

/** A batch with a key to run. */
export type KeyedRequest = {
  readonly batch: Batch;
  readonly key: BatchKey;
  /** The client's token; null: it sends none. */
  readonly after: Token | null;
};

/** A batch with a key. Its creator starts it, and may stop it at any time. */
export class KeyedRun implements Execution, RunEvents, KeyOwner {
  readonly #launcher: Launcher;
  readonly #keys: KeyStore;
  readonly #key: BatchKey;
  readonly #after: Token | null;
  readonly #batch: Batch;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  /** When the client is answered in any case; by performance.now(). */
  readonly #until: number;
  /** The ids of this run's attempts. */
  readonly #attempts = new Set<string>();
  #phase: Phase = 'created';
  /** The latest attempt; null: there is none, or it waits for a server. */
  #run: BatchRun | null = null;
  #execution: Execution | null = null;
  /** The control connection of the latest attempt's server. */
  #control: Control | null = null;
  #lock: KeyLock | null = null;
  #hasPlace = false;
  /** Another request of this worker with the same key ran before. */
  #wasBehind = false;
  /** The COMMIT of one of the attempts has no answer. */
  #mayHaveCommitted = false;
  #hasLost = false;
  /** The key is to be stored without a reply. */
  #isBarring = false;
  /** Losses while the statements ran, and errors after which it is unknown what became of COMMIT. */
  #losses = 0;
  /** The tables that the batch writes to; null: unknown. */
  readonly #writes: Writes | null;
  /** The session that was lost last, which may still be at work. */
  #predecessor: LostSession | null = null;
  #predecessorControl: Control | null = null;
  #wasSent = false;

  constructor(
    launcher: Launcher,
    keys: KeyStore,
    { batch, key, after }: KeyedRequest,
    events: RunEvents,
    times: RunTimes,
  ) {
    this.#launcher = launcher;
    this.#keys = keys;
    this.#batch = batch;
    this.#writes = findWrites(batch);
    this.#key = key;
    this.#after = after;
    this.#events = events;
    this.#times = times;
    this.#until = performance.now() + key.timeoutMs;
  }

  start(): void {
    this.#phase = 'waiting';
    this.#times.enter('waiting');
    this.#lock = this.#keys.locks.acquire(this.#key.id, () => this.#begin());
    this.#wasBehind = !this.#lock.wasFree;
    if (this.#lock.wasFree) this.#begin();
    else this.#takePlace();
  }

  /** A request that waits for the lock waits for another one's session: it takes a place as those in the queue do. */
  #takePlace(): void {
    const reason = this.#launcher.admission.admit(this.#times);
    this.#hasPlace = reason === null;
    if (reason !== null) this.#end({ kind: 'not executed', reason });
  }

  get isSent(): boolean {
    return this.#wasSent || this.#execution?.isSent === true;
  }

  get backend(): string | null {
    return this.#execution?.backend ?? null;
  }

  /** Once the server may have received a COMMIT, only its end counts. */
  get isRevocable(): boolean {
    return !this.#mayHaveCommitted && this.#run?.isRevocable !== false;
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'created':
      case 'waiting':
        this.#end({ kind: 'key unknown', reason });
        break;
      case 'running':
      case 'proving':
        this.#execution?.stop(reason);
        break;
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  seen(seen: TokenResult): void {
    this.#events.seen(seen);
  }

  get sink(): RunSink {
    return this.#events.sink;
  }

  get traceparent(): string | null {
    return this.#events.traceparent;
  }

  runEnded(end: RunEnd): void {
    const run = this.#run;
    this.#wasSent ||= run?.isSent === true;
    this.#mayHaveCommitted ||= run?.mayHaveCommitted === true;
    if (run !== null && end.kind === 'lost' && end.outcome === 'unknown') {
      const { lostSession, mayHaveCommitted } = run;
      this.#hasLost = true;
      if (!mayHaveCommitted || lostSession === null) this.#losses += 1;
      if (lostSession !== null) this.#succeed(lostSession);
      this.#tryAgain();
    } else if (this.#isUnreached(end)) this.#tryAgain();
    else if (this.#isRefusedRerun(end)) this.#bar();
    else if (end.kind === 'key taken') this.#end(this.#answerWith(end.row));
    else this.#end(this.#judge(end, run));
  }

  #begin(): void {
    if (this.#phase !== 'waiting') return;
    this.#leavePlace();
    this.#phase = 'running';
    this.#attempt(this.#batch);
  }

  /** Only after a loss: a first attempt that finds no server has executed nothing. */
  #isUnreached(end: RunEnd): boolean {
    return this.#hasLost && end.kind === 'not executed' && foundNoConnection(end);
  }

  /**
   * The key shows whether a COMMIT was received: if the key is free, nothing of the attempt before remains, provided that a ROLLBACK
   * undoes all that the batch does.
   */
  #tryAgain(): void {
    this.#events.sink.restart();
    const mustUndo = this.#writes;
    if (this.#isBarring || mustUndo === null) this.#bar();
    else if (this.#losses <= maxLosses) this.#attempt({ ...this.#batch, mustUndo });
    else {
      this.#phase = 'proving';
      this.#attempt(createProof(this.#batch, mustUndo));
    }
  }

  /** After a loss the server reports that not all of what the attempt before did is undone. */
  #isRefusedRerun(end: RunEnd): boolean {
    const isRefused = end.kind === 'batch failed' && end.fault.kind === 'not undoable';
    return isRefused && this.#hasLost && !this.#isBarring && end.outcome === 'not_executed';
  }

  /** Work that may remain in part is never run again, not even when the request is repeated: the key is stored without a reply. */
  #bar(): void {
    this.#phase = 'proving';
    this.#isBarring = true;
    this.#attempt(createBar(this.#batch));
  }

  #attempt(batch: Batch): void {
    const attempt = new KeyAttempt(this.#keys, this.#key, this.#predecessor, this);
    this.#attempts.add(attempt.id);
    this.#run = null;
    const create: CreateRun = (context, events) => {
      this.#run = new BatchRun(
        context,
        { batch, attempt, after: this.#after },
        events,
        this.#times,
      );
      this.#control = context.control;
      return this.#run;
    };
    const wish = { isReadOnly: false, hasKey: true, after: this.#after, needsPrimary: false };
    this.#execution = this.#launcher.launch(wish, create, this, this.#times);
    this.#execution.start();
  }

  get isRecovering(): boolean {
    return this.#hasLost;
  }

  /** Half of the remaining time: if the answer is lost, the other half is for looking the key up. */
  get commitTimeoutMs(): number {
    return Math.max(0, (this.#until - performance.now()) / 2);
  }

  #answerWith({ request, attempt, reply }: KeptRow): RunEnd {
    if (request !== this.#key.request) return { kind: 'key refused', reason: 'other request' };
    if (reply === null) return { kind: 'key refused', reason: 'no reply' };
    this.#events.sink.replay?.(reply, !this.#attempts.has(attempt));
    return succeeded;
  }

  /** The end of the whole, by the end of an attempt. An attempt without the key does not know whether one before it was committed. */
  #judge(end: RunEnd, run: BatchRun | null): RunEnd {
    if (this.#phase === 'proving') {
      if (end.kind === 'batch failed') return { kind: 'lost', outcome: 'unknown' };
      const isProven = end.kind === 'answered' && end.failure === null;
      if (isProven) return { kind: 'lost', outcome: this.#isBarring ? 'unknown' : 'rolled_back' };
    }
    if (end.kind === 'faulted') return { ...end, isSent: end.isSent || this.#hasLost };
    const reason = 'reason' in end && end.kind !== 'key refused' ? end.reason : null;
    const hasKey = run?.hasKey === true;
    if (this.#hasLost && !hasKey) return { kind: 'key unknown', reason: reason ?? 'lost' };
    if (reason === null) return end;
    // The lock came at the deadline: what became of the request before it is unknown.
    if (this.#wasBehind && !hasKey && reason === 'deadline') return { kind: 'key unknown', reason };
    // Only the transaction that has the key can be committed.
    const isCertain =
      end.kind === 'batch stopped'
        ? hasKey && end.outcome !== 'unknown'
        : end.kind === 'not executed';
    return isCertain ? end : { kind: 'key unknown', reason };
  }

  #leavePlace(): void {
    if (this.#hasPlace) this.#launcher.admission.leave(this.#times.account);
    this.#hasPlace = false;
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#times.enter('over');
    this.#leavePlace();
    const left = this.#run?.lostSession ?? null;
    this.#endLost(this.#predecessor);
    if (left !== null) this.#control?.endLost(left);
    try {
      this.#events.runEnded(end);
    } finally {
      this.#lock?.release();
    }
  }

  /** The session that was lost before may belong to another server, whose control connection ends it. */
  #succeed(lost: LostSession): void {
    this.#endLost(this.#predecessor);
    this.#predecessor = lost;
    this.#predecessorControl = this.#control;
  }

  /** Ends what an attempt has left in the server: it would keep the key, and no other part knows of it. */
  #endLost(lost: LostSession | null): void {
    if (lost !== null) this.#predecessorControl?.endLost(lost);
  }
}

/** A batch that only takes the key and releases it. If that succeeds, all that a ROLLBACK undoes is undone. */
function createProof(batch: Batch, mustUndo: Writes): Batch {
  return { ...batch, steps: [], mustUndo, isDryRun: true };
}

/** A batch that takes the key and keeps it. */
function createBar(batch: Batch): Batch {
  return { ...batch, steps: [], mustUndo: null, isBarred: true };
}

/** The tables that a batch writes to; null: unknown for one of its statements. */
function findWrites({ steps }: Batch): Writes | null {
  const tables: TableName[] = [];
  const reads: TableName[] = [];
  const procedures: TableName[] = [];
  for (const { statement } of steps) {
    const { confinedTo } = statement.effects;
    const procedure = statement.analysis?.classification.procedure ?? null;
    if (confinedTo !== null) {
      (statement.isRead ? reads : tables).push(...confinedTo);
    } else if (procedure !== null) procedures.push(procedure);
    else return null;
  }
  return { tables, reads, procedures };
}
