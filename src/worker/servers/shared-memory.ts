// The memory of a section's primary, as a worker shares it with the others: the supervisor decides which memory is in force, and workers
// propose the next one.
import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';

/** Asks the supervisor. Resolves once the memory is in force and all workers know it, or with the one in force; null: no answer. */
export type ProposePrimary = (
  base: number | null,
  memory: PrimaryMemory,
) => Promise<{ readonly isAccepted: boolean; readonly memory: PrimaryMemory | null } | null>;

/** How often changes of the replicas may be proposed, in ms, so that two workers with different views do not hurry each other. */
const detailMs = 1_000;
/** How often the primary's position may be proposed. */
const positionMs = 5_000;

/** The memory of one section in one worker. */
export class SharedMemory {
  /** Null: nothing is remembered. */
  inForce: PrimaryMemory | null;
  readonly #propose: ProposePrimary;
  readonly #onChange: () => void;
  readonly #clock: () => number;
  #phase: 'idle' | 'proposing' | 'closed' = 'idle';
  /** The term in force when this worker found another primary, whether that is remembered or not; null: it found none. */
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

  /** The supervisor has put a memory in force. */
  adopt(memory: PrimaryMemory): void {
    if (isDeepStrictEqual(memory, this.inForce)) return;
    this.inForce = memory;
    this.#changedAt = this.#clock();
    this.#onChange();
  }

  /** Whether this worker has found another primary than the one in force. Until that is remembered, it must write to neither. */
  get awaitsPrimary(): boolean {
    return this.#endedTerm !== null && this.#endedTerm === (this.inForce?.term ?? 0);
  }

  close(): void {
    this.#phase = 'closed';
  }

  /**
   * Proposes this memory to the supervisor, if that is due. If the instance is ending, the supervisor refuses, and answers with its
   * successor's memory.
   * @param isLost the primary is not in use: its last position is proposed at once
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
    // Also if there is no answer: the memory is then proposed again after a later probe.
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

/** How long after the last change, in ms, the next one may come. A new primary is proposed at once. */
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
