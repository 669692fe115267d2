// The log's lines about an overload: when it begins, every ten seconds while it lasts, and when it has ended. Times are those of
// performance.now, in ms.
import { performance } from 'node:perf_hooks';
import { defaultClient } from '../../shared/clients/client.ts';
import type { FailureCode } from '../../shared/failure-codes.ts';
import type { Log, LogFields } from '../../shared/process/log.ts';

/** The codes with which requests are rejected because too many wait. */
const busyCodes = ['QUEUE_FULL', 'CLIENT_BUSY', 'WAITED_TOO_LONG'] as const;

type BusyCode = (typeof busyCodes)[number];

function isBusyCode(code: FailureCode | null): code is BusyCode {
  return busyCodes.some((busy) => busy === code);
}

/** How often a line is logged while an overload lasts. If nothing is rejected for this time, the overload has ended. */
const logMs = 10_000;
const checkMs = 1_000;

/** The most clients that a line names: those with the most rejections. */
const maxNamed = 10;

const names = {
  CLIENT_BUSY: 'client_busy',
  QUEUE_FULL: 'queue_full',
  WAITED_TOO_LONG: 'waited_too_long',
} as const satisfies Record<BusyCode, string>;

/** How many requests were rejected because too many wait for a connection. */
class Rejections {
  readonly byCode: Record<BusyCode, number> = {
    CLIENT_BUSY: 0,
    QUEUE_FULL: 0,
    WAITED_TOO_LONG: 0,
  };
  readonly byClient = new Map<string, number>();

  count(code: BusyCode, client: string): void {
    this.byCode[code] += 1;
    this.byClient.set(client, (this.byClient.get(client) ?? 0) + 1);
  }
}

/** An overload that has not ended. */
type Lasting = {
  readonly since: number;
  readonly all: Rejections;
  lately: Rejections;
  lastAt: number;
  loggedAt: number;
};

/** The overloads of one section, as one worker sees them. The owner must call `end`. */
export class Overload {
  readonly #log: Log;
  readonly #describeLoad: () => LogFields;
  #lasting: Lasting | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** @param describeLoad the further fields of each line */
  constructor(log: Log, describeLoad: () => LogFields) {
    this.#log = log;
    this.#describeLoad = describeLoad;
  }

  /**
   * To be called with the failure of each finished request.
   * @param code null: it succeeded, or MySQL rejected a statement
   * @param client the client's name
   */
  observe(code: FailureCode | null, client: string, now: number): void {
    if (!isBusyCode(code)) return;
    const lasting = this.#lasting ?? this.#begin(code, client, now);
    lasting.all.count(code, client);
    lasting.lately.count(code, client);
    lasting.lastAt = now;
  }

  /** Logs the line that is due. */
  check(now: number): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    if (now - lasting.lastAt >= logMs) {
      this.end();
    } else if (now - lasting.loggedAt >= logMs) {
      this.#log.warn('the overload goes on: requests are rejected, because too many wait', {
        ...countsOf(lasting.lately),
        ...this.#describeLoad(),
      });
      lasting.loggedAt = now;
      lasting.lately = new Rejections();
    }
  }

  /** Logs the sums, because the overload is over or the worker stops. */
  end(): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    clearInterval(this.#timer);
    this.#lasting = null;
    const seconds = Math.round((lasting.lastAt - lasting.since) / 1000);
    this.#log.warn('the overload has ended', {
      ...countsOf(lasting.all),
      lasted_s: seconds,
      ...this.#describeLoad(),
    });
  }

  #begin(code: BusyCode, client: string, now: number): Lasting {
    this.#log.warn('an overload begins: requests are rejected, because too many wait', {
      code,
      ...(client !== defaultClient.name && { client }),
      ...this.#describeLoad(),
    });
    const all = new Rejections();
    const lasting = { since: now, all, lately: new Rejections(), lastAt: now, loggedAt: now };
    this.#timer = setInterval(() => this.check(performance.now()), checkMs).unref();
    this.#lasting = lasting;
    return lasting;
  }
}

function countsOf({ byCode, byClient }: Rejections): LogFields {
  const counts = Object.entries(byCode) as [BusyCode, number][];
  const parts = counts.filter(([code, count]) => code !== 'CLIENT_BUSY' || count > 0);
  return {
    rejected: counts.reduce((sum, [, count]) => sum + count, 0),
    ...Object.fromEntries(parts.map(([code, count]) => [names[code], count])),
    ...describeClients(byClient),
  };
}

/** Nothing, where no clients are configured. */
function describeClients(byClient: ReadonlyMap<string, number>): LogFields {
  if ([...byClient.keys()].every((name) => name === defaultClient.name)) return {};
  const ordered = [...byClient].sort(([, one], [, other]) => other - one).slice(0, maxNamed);
  return { clients: ordered.map(([name, count]) => `${name}=${count}`).join(' ') };
}
