// What is remembered of a section's primary, as a worker shares it with the others: the supervisor says which memory is in force, and a worker
// proposes the next one.
// Must not know what the memory means.
import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';

/** Asks the supervisor. Resolves once the memory is in force and all workers know it, or with the one that is; null: no answer. */
export type ProposePrimary = (
  base: number | null,
  memory: PrimaryMemory,
) => Promise<{ readonly isAccepted: boolean; readonly memory: PrimaryMemory | null } | null>;

/** What is known of the primary's replicas may be proposed so often, in ms: two workers that see it differently do not hurry each other. */
const detailMs = 1_000;
/** How far the primary has come may be. */
const positionMs = 5_000;

/** The memory of one section in one worker. */
export class SharedMemory {
  /** Null: nothing is remembered. */
  inForce: PrimaryMemory | null;
  readonly #propose: ProposePrimary;
  readonly #onChange: () => void;
  readonly #clock: () => number;
  #phase: 'idle' | 'proposing' | 'closed' = 'idle';
  /** The term in force after which this worker has found another primary, be it remembered or not; null: none was found. */
  #endedTerm: number | null = null;
  #changedAt = Number.NEGATIVE_INFINITY;

  /** @param onChange called when another memory is in force, and when a proposal was not answered */
  constructor(
    inForce: PrimaryMemory | null,
    propose: ProposePrimary,
    onChange: () => void,
    clock = () => performance.now(),
  ) {
    this.inForce = inForce;
    this.#propose = propose;
    this.#onChange = onChange;
    this.#clock = clock;
  }

  /** The supervisor says so. */
  adopt(memory: PrimaryMemory): void {
    if (isDeepStrictEqual(memory, this.inForce)) return;
    this.inForce = memory;
    this.#changedAt = this.#clock();
    this.#onChange();
  }

  /** Whether this worker has found another primary than the one in force: until that is remembered it must write to neither. */
  get awaitsPrimary(): boolean {
    return this.#endedTerm !== null && this.#endedTerm === (this.inForce?.term ?? 0);
  }

  /** From now on nothing is proposed. */
  close(): void {
    this.#phase = 'closed';
  }

  /**
   * Has the supervisor take this memory, if it is due. The supervisor of an instance that ends refuses, and answers with what its successor
   * remembers.
   * @param isLost the primary is not in use: how far it had come is proposed at once
   */
  propose(memory: PrimaryMemory, isLost: boolean): void {
    const { inForce } = this;
    if (memory.term !== (inForce?.term ?? 0)) this.#endedTerm = inForce?.term ?? 0;
    if (this.#phase !== 'idle' || memory === inForce) return;
    const waitMs = inForce === null ? 0 : pauseBefore(inForce, memory, isLost);
    if (this.#clock() - this.#changedAt < waitMs) return;
    void this.#ask(inForce?.version ?? null, memory);
  }

  async #ask(base: number | null, memory: PrimaryMemory): Promise<void> {
    this.#phase = 'proposing';
    // Also where it is not answered: what is not in force by then is proposed again at a later look.
    this.#changedAt = this.#clock();
    const answer = await this.#propose(base, memory);
    if (this.#isClosed) return;
    this.#phase = 'idle';
    if (answer?.memory) this.adopt(answer.memory);
  }

  get #isClosed(): boolean {
    return this.#phase === 'closed';
  }
}

/** How long after the last change, in ms, the next one may come. A new primary waits for nothing. */
function pauseBefore(inForce: PrimaryMemory, next: PrimaryMemory, isLost: boolean): number {
  if (next.term !== inForce.term) return 0;
  const { position } = inForce.primary;
  const { version } = inForce;
  const isPositionOnly = isDeepStrictEqual(
    { ...next, version, primary: { ...next.primary, position } },
    inForce,
  );
  return isPositionOnly && !isLost ? positionMs : detailMs;
}
