// Watches certificates and clients: a log line a day for each that expires soon or is over, and the times for /metrics.
import { listCertificates, type UsedCertificate } from '../../shared/config/certificates.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import type { Log } from '../../shared/process/log.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** Time enough to renew by hand. The alerts DbhttpdCertificateExpires and DbhttpdClientExpires have the same bound. */
const soonDays = 14;

/** A client of the clients file that is rejected from a moment on. */
export type ExpiringClient = { readonly client: string; readonly expiresAtMs: number };

/** A sentence about a certificate that expires within 14 days; null: it does not, or is not valid now. */
export function findNearExpiry(
  { expiresAtMs, lapse }: UsedCertificate,
  nowMs: number,
): string | null {
  return lapse === null ? describeNearness(expiresAtMs, nowMs) : null;
}

/** A sentence about a client that has expired, or expires within 14 days; null: neither. */
export function findClientExpiry({ expiresAtMs }: ExpiringClient, nowMs: number): string | null {
  return expiresAtMs <= nowMs
    ? `expired on ${new Date(expiresAtMs).toISOString()}`
    : describeNearness(expiresAtMs, nowMs);
}

function describeNearness(expiresAtMs: number, nowMs: number): string | null {
  const leftMs = expiresAtMs - nowMs;
  if (leftMs > soonDays * dayMs) return null;
  const date = new Date(expiresAtMs).toISOString();
  const days = Math.floor(leftMs / dayMs) + 1;
  return `expires on ${date}, in less than ${days === 1 ? 'a day' : `${days} days`}`;
}

/** Lists the clients that have a day of expiry, in the order of the file. */
export function listExpiringClients({ access }: Pick<Config, 'access'>): readonly ExpiringClient[] {
  const clients = access?.clients.clients ?? [];
  return clients.flatMap(({ name, expiresAt }) =>
    expiresAt === null ? [] : [{ client: name, expiresAtMs: expiresAt }],
  );
}

/** The certificates and clients of a running instance. Its owner must close it. */
export class ExpiryWatch {
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #sections: Sections;

  constructor(sections: Sections, log: Log) {
    this.#sections = sections;
    this.#log = log;
    this.#timer = setInterval(() => this.look(this.#sections), dayMs);
    this.#timer.unref();
  }

  /** Takes what is in use from now on, and logs what needs an operator. */
  look(sections: Sections): void {
    this.#sections = sections;
    const now = Date.now();
    for (const certificate of this.certificates()) {
      const { section, key, lapse } = certificate;
      const problem = lapse ?? findNearExpiry(certificate, now);
      if (problem === null) continue;
      const message =
        lapse === null ? 'a certificate expires soon' : 'a certificate is not valid now';
      // A single section needs no name.
      const place = sections.length > 1 ? { section } : {};
      this.#log.warn(message, { ...place, key, problem });
    }
    for (const expiring of this.clients()) {
      const { client, expiresAtMs } = expiring;
      const problem = findClientExpiry(expiring, now);
      if (problem === null) continue;
      const message = expiresAtMs > now ? 'a client expires soon' : 'a client is rejected';
      this.#log.warn(message, { client, problem });
    }
  }

  certificates(): readonly UsedCertificate[] {
    return listCertificates(this.#sections, Date.now());
  }

  clients(): readonly ExpiringClient[] {
    return listExpiringClients(this.#sections[0]);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
