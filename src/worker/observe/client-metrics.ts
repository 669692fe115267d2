// The metrics of each client in one worker. Their labels are bounded: the names of the clients in force, and of removed ones that still run.
import { type FailureCode, outcomes, type RequestOutcome } from '../../shared/failure-codes.ts';
import type { Sample } from '../../shared/observe/metrics.ts';
import type { Accounts } from '../servers/account.ts';
import { sample } from './metrics.ts';
import type { Observation } from './observation.ts';

/** The codes that are counted for each client. */
const refusalCodes = [
  'FORBIDDEN',
  'READ_ONLY',
  'CLIENT_BUSY',
  'QUEUE_FULL',
  'WAITED_TOO_LONG',
] as const satisfies readonly FailureCode[];

type RefusalCode = (typeof refusalCodes)[number];

/** The counts of one client. */
class ClientCounts {
  replyBytes = 0;
  readonly outcomes: Record<RequestOutcome, number>;
  readonly refusals: Record<RefusalCode, number>;

  constructor() {
    this.outcomes = zeroes(outcomes);
    this.refusals = zeroes(refusalCodes);
  }
}

function zeroes<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

/** The counts of all clients of a worker. */
export class ClientMetrics {
  readonly #accounts: Accounts;
  readonly #byName = new Map<string, ClientCounts>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  observe(observation: Observation): void {
    if (observation.kind === 'statements finished') {
      const { client, outcome, bytes } = observation.summary;
      const counts = this.#countsOf(client);
      counts.outcomes[outcome] += 1;
      counts.replyBytes += bytes;
    } else if (observation.kind === 'request finished') {
      const { code, identified } = observation.record;
      if (identified !== null && isRefusal(code)) {
        this.#countsOf(identified.client.name).refusals[code] += 1;
      }
    }
  }

  /** The samples of each client that has an account: all begin at 0. @param now performance.now */
  samples(now: number): readonly Sample[] {
    for (const name of this.#byName.keys()) {
      if (!this.#accounts.has(name)) this.#byName.delete(name);
    }
    return this.#accounts.observations(now).flatMap(({ client, ...account }) => {
      const counts = this.#countsOf(client);
      return [
        ...outcomes.map((outcome) =>
          sample('dbhttpd_client_requests_total', counts.outcomes[outcome], { client, outcome }),
        ),
        ...refusalCodes.map((code) =>
          sample('dbhttpd_client_refused_total', counts.refusals[code], { client, code }),
        ),
        sample('dbhttpd_client_held_seconds_total', account.heldSeconds, { client }),
        sample('dbhttpd_client_reply_bytes_total', counts.replyBytes, { client }),
        sample('dbhttpd_client_requests_in_flight', account.inFlight, { client }),
        sample('dbhttpd_client_requests_waiting', account.waiting, { client }),
      ];
    });
  }

  #countsOf(name: string): ClientCounts {
    let counts = this.#byName.get(name);
    if (counts === undefined) {
      counts = new ClientCounts();
      this.#byName.set(name, counts);
    }
    return counts;
  }
}

function isRefusal(code: FailureCode | null): code is RefusalCode {
  return refusalCodes.some((one) => one === code);
}
