// Watches the certificates in use: a log line a day for each that expires soon or is not valid, and the times for /metrics.
import { listCertificates, type UsedCertificate } from '../../shared/config/certificates.ts';
import type { Sections } from '../../shared/config/config.ts';
import type { Log } from '../../shared/process/log.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** Time enough to renew a certificate by hand. The alert DbhttpdCertificateExpires has the same bound. */
const soonDays = 14;

/** A sentence about a certificate that expires within 14 days; null: it does not, or is not valid now. */
export function findNearExpiry(
  { expiresAtMs, lapse }: UsedCertificate,
  nowMs: number,
): string | null {
  const leftMs = expiresAtMs - nowMs;
  if (lapse !== null || leftMs > soonDays * dayMs) return null;
  const date = new Date(expiresAtMs).toISOString();
  const days = Math.floor(leftMs / dayMs) + 1;
  return `expires on ${date}, in less than ${days === 1 ? 'a day' : `${days} days`}`;
}

/** The certificates of a running instance. Its owner must close it. */
export class CertificateWatch {
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #sections: Sections;

  constructor(sections: Sections, log: Log) {
    this.#sections = sections;
    this.#log = log;
    this.#timer = setInterval(() => this.look(this.#sections), dayMs);
    this.#timer.unref();
  }

  /** Takes the certificates that are in use from now on, and logs those that need an operator. */
  look(sections: Sections): void {
    this.#sections = sections;
    const now = Date.now();
    for (const certificate of this.list()) {
      const { section, key, lapse } = certificate;
      const problem = lapse ?? findNearExpiry(certificate, now);
      if (problem === null) continue;
      const message =
        lapse === null ? 'a certificate expires soon' : 'a certificate is not valid now';
      // A single section needs no name.
      const place = sections.length > 1 ? { section } : {};
      this.#log.warn(message, { ...place, key, problem });
    }
  }

  list(): readonly UsedCertificate[] {
    return listCertificates(this.#sections, Date.now());
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
