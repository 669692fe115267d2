// Tells the log of an overload: when it begins, every ten seconds while it lasts, and when it has ended.
// Time comes from outside, in ms by performance.now; a timer only asks for lines that are due.
import { performance } from 'node:perf_hooks';
import type { FailureCode } from '../../shared/failure-codes.ts';
import type { Log, LogFields } from '../../shared/process/log.ts';

/** How often a line goes to the log while an overload lasts. After as long without a rejection, the overload has ended. */
const tellingMs = 10_000;
const lookMs = 1_000;

/** How many requests were rejected because too many wait for a connection. */
class Rejections {
  queueFull = 0;
  waitedTooLong = 0;

  count(code: 'QUEUE_FULL' | 'WAITED_TOO_LONG'): void {
    if (code === 'QUEUE_FULL') this.queueFull += 1;
    else this.waitedTooLong += 1;
  }
}

/** An overload that lasts. */
type Lasting = {
  readonly since: number;
  readonly all: Rejections;
  lately: Rejections;
  lastAt: number;
  toldAt: number;
};

/** The overloads of one section, as one worker sees them. Its owner ends it. */
export class Overload {
  readonly #log: Log;
  readonly #describeLoad: () => LogFields;
  #lasting: Lasting | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** @param describeLoad what each line says beside the counts */
  constructor(log: Log, describeLoad: () => LogFields) {
    this.#log = log;
    this.#describeLoad = describeLoad;
  }

  /** To be called with the failure of each request that is over. @param code null: it succeeded, or failed by MySQL's own error */
  observe(code: FailureCode | null, now: number): void {
    if (code !== 'QUEUE_FULL' && code !== 'WAITED_TOO_LONG') return;
    const lasting = this.#lasting ?? this.#begin(code, now);
    lasting.all.count(code);
    lasting.lately.count(code);
    lasting.lastAt = now;
  }

  /** Tells the log what is due. */
  look(now: number): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    if (now - lasting.lastAt >= tellingMs) {
      this.end();
    } else if (now - lasting.toldAt >= tellingMs) {
      this.#log.warn('the overload goes on: requests are rejected, because too many wait', {
        ...tell(lasting.lately),
        ...this.#describeLoad(),
      });
      lasting.toldAt = now;
      lasting.lately = new Rejections();
    }
  }

  /** The overload is over, or the worker stops: the log has its sums. */
  end(): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    clearInterval(this.#timer);
    this.#lasting = null;
    const seconds = Math.round((lasting.lastAt - lasting.since) / 1000);
    this.#log.warn('the overload has ended', {
      ...tell(lasting.all),
      lasted_s: seconds,
      ...this.#describeLoad(),
    });
  }

  #begin(code: FailureCode, now: number): Lasting {
    this.#log.warn('an overload begins: requests are rejected, because too many wait', {
      code,
      ...this.#describeLoad(),
    });
    const all = new Rejections();
    const lasting = { since: now, all, lately: new Rejections(), lastAt: now, toldAt: now };
    this.#timer = setInterval(() => this.look(performance.now()), lookMs).unref();
    this.#lasting = lasting;
    return lasting;
  }
}

function tell({ queueFull, waitedTooLong }: Rejections): LogFields {
  return {
    rejected: queueFull + waitedTooLong,
    queue_full: queueFull,
    waited_too_long: waitedTooLong,
  };
}
