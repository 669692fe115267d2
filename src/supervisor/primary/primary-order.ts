// The order by which `dbhttpd --primary` sets another primary in a running instance, and its answer: one line each way at the phase socket.
import { formatCandidate } from '../../shared/config/addresses.ts';
import type { Sections } from '../../shared/config/config.ts';
import type { RememberedPrimary } from '../../shared/servers/primary-memory.ts';
import type { Overridden, PrimaryMemories } from './primary-memories.ts';

/** The primary of one section, as the operator's command has found it. */
export type PrimaryChange = {
  readonly section: string;
  readonly primary: Omit<RememberedPrimary, 'taken'>;
};

/** The result of one change. `before`: the address of the primary until then; null: none was remembered. */
export type ChangeResult = {
  readonly section: string;
  readonly before: string | null;
  /** False: the file could not be written, and the change ends with the instance. */
  readonly isSaved: boolean;
};

/** The result of an order. `refused`: nothing has changed. */
export type OrderResult =
  | { readonly kind: 'set'; readonly results: readonly ChangeResult[] }
  | { readonly kind: 'refused'; readonly problem: string };

/** An order as it is sent: all its changes, or none if the instance does not serve one of them. */
export function formatOrder(changes: readonly PrimaryChange[]): string {
  return JSON.stringify({ primary: changes });
}

/** Reads the answer to an order; null: it is something else. */
export function parseOrderResult(text: string): OrderResult | null {
  try {
    const result = JSON.parse(text) as OrderResult | null;
    return result?.kind === 'set' || result?.kind === 'refused' ? result : null;
  } catch {
    return null;
  }
}

/** The result of a change. */
export function describeChange(section: string, { before, isSaved }: Overridden): ChangeResult {
  return { section, before: before?.primary.address ?? null, isSaved };
}

/** Carries out an order in the instance that serves these sections; its answer as it is sent. Null: the instance is ending. */
export async function obeyOrder(
  order: string,
  sections: Sections,
  override: PrimaryMemories['override'],
): Promise<string | null> {
  const answer = (result: OrderResult) => JSON.stringify(result);
  const changes = parseOrder(order);
  if (changes === null) return answer({ kind: 'refused', problem: 'it does not know this order' });
  const stranger = changes.find((change) => !isServed(change, sections));
  if (stranger !== undefined) {
    const { section, primary } = stranger;
    const problem = `[${section}] had no server ${primary.address} when it was started`;
    return answer({ kind: 'refused', problem });
  }
  const results: ChangeResult[] = [];
  try {
    for (const { section, primary } of changes) {
      const overridden = await override(section, primary);
      if (overridden === null) return null;
      results.push(describeChange(section, overridden));
    }
  } catch (error) {
    return answer({ kind: 'refused', problem: (error as Error).message });
  }
  return answer({ kind: 'set', results });
}

/** Only the gateway's own user can send an order. This checks its form; the memory that it leads to is checked later. */
function parseOrder(text: string): readonly PrimaryChange[] | null {
  try {
    const { primary: changes } = JSON.parse(text) as { readonly primary?: unknown };
    return Array.isArray(changes) && changes.every(isChange) ? changes : null;
  } catch {
    return null;
  }
}

function isChange(value: unknown): value is PrimaryChange {
  const { section, primary } = (value ?? {}) as Partial<PrimaryChange>;
  return typeof section === 'string' && typeof primary?.address === 'string';
}

function isServed({ section, primary }: PrimaryChange, sections: Sections): boolean {
  const { candidates } = sections.find((one) => one.section === section) ?? { candidates: [] };
  return (
    candidates.length > 1 && candidates.some((one) => formatCandidate(one) === primary.address)
  );
}
