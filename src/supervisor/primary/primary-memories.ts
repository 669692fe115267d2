// The instance's memory of the primary of each section that has several servers: one memory in force, shared by all workers, and a copy on
// disk. It does not decide which server is the primary: workers propose changes, and an operator may override them.
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../shared/config/config.ts';
import type { Log } from '../../shared/process/log.ts';
import type { SupervisorCalls } from '../../shared/process/messages.ts';
import {
  formatPrimaryMemory,
  overridePrimary,
  type PrimaryMemory,
  parsePrimaryMemory,
  type RememberedPrimary,
} from '../../shared/servers/primary-memory.ts';
import { primaryFilePath, readPrimaryFile, replacePrimaryFile } from './primary-file.ts';

type Proposal = SupervisorCalls['proposePrimary'];

/** The change by an override. */
export type Overridden = {
  /** The memory until then; null: none. */
  readonly before: PrimaryMemory | null;
  readonly memory: PrimaryMemory;
  /** False: the file cannot be written, and the memory ends with the instance. */
  readonly isSaved: boolean;
};

/** The memories of one instance. */
export type PrimaryMemories = {
  /** The memories in force, by section; a section without one is missing. */
  readonly inForce: () => Readonly<Record<string, PrimaryMemory>>;
  /**
   * Takes a memory if the one that it was made from is still in force. It is on the disk, and every worker has been sent it, when this
   * resolves. Rejects for a section that has no memory, and for a memory that could not be read again.
   */
  readonly propose: (proposal: Proposal['asked']) => Promise<Proposal['answer']>;
  /** Takes the primary that an operator names. Null: the instance is ending, or has no such section. */
  readonly override: (
    section: string,
    primary: Omit<RememberedPrimary, 'taken'>,
  ) => Promise<Overridden | null>;
  /** Ends all writing at once: from now on the files belong to a successor, and proposals are answered with its memory. */
  readonly freeze: () => void;
  /** The number of sections whose memory does not outlive the instance. */
  readonly unsaved: () => number;
};

/** Called for each memory that comes into force, in their order, before the proposer gets its answer. */
type Announce = (section: string, memory: PrimaryMemory) => void;

/** How the files are written. */
export type Saving = {
  readonly replace: typeof replacePrimaryFile;
  /** A disk that takes longer counts as one that cannot be written to, because clients wait for the primary in the meantime. */
  readonly boundMs: number;
  /** Positions move with every write of a client: they are saved at most this often. */
  readonly lazyMs: number;
  /** A file that could not be written is tried again this often. */
  readonly retryMs: number;
};

const usualSaving: Saving = {
  replace: replacePrimaryFile,
  boundMs: 2000,
  lazyMs: 1000,
  retryMs: 5000,
};

/** The part of a section's configuration that the memory uses. */
type KeptSection = Pick<Config, 'section' | 'stateDir' | 'candidates'>;

/** Reads the memories of all sections that have several servers. The caller must freeze them in the end. */
export function openPrimaryMemories(
  sections: readonly KeptSection[],
  log: Log,
  announce: Announce,
  saving = usualSaving,
): PrimaryMemories {
  const keepers = new Map(
    sections
      .filter(({ candidates }) => candidates.length > 1)
      .map((config) => [config.section, new Keeper(config, log, announce, saving)]),
  );
  return {
    inForce: () =>
      Object.fromEntries(
        [...keepers].flatMap(([section, { inForce }]) =>
          inForce === null ? [] : [[section, inForce]],
        ),
      ),
    propose: async (proposal) => {
      const keeper = keepers.get(proposal.section);
      if (keeper === undefined) throw new Error('the section has no memory of a primary');
      return keeper.propose(proposal);
    },
    override: async (section, primary) => keepers.get(section)?.override(primary) ?? null,
    freeze: () => {
      for (const keeper of keepers.values()) keeper.freeze();
    },
    unsaved: () => [...keepers.values()].filter(({ isUnsaved }) => isUnsaved).length,
  };
}

/** The memory of one section. Changes are made one after the other. */
class Keeper {
  inForce: PrimaryMemory | null = null;
  readonly #section: string;
  readonly #path: string;
  readonly #log: Log;
  readonly #announce: Announce;
  readonly #saving: Saving;
  /** The content of the file, as far as it is known; null: none. */
  #saved: PrimaryMemory | null = null;
  /** Why the last write failed; null: it succeeded. */
  #problem: string | null = null;
  #isFrozen = false;
  /** A write that took too long may still end. */
  #isWriting = false;
  #hasWarnedOfOther = false;
  #last: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;

  constructor(config: KeptSection, log: Log, announce: Announce, saving: Saving) {
    this.#section = config.section;
    this.#path = primaryFilePath(config);
    this.#log = log;
    this.#announce = announce;
    this.#saving = saving;
    const content = readPrimaryFile(this.#path);
    if (content.kind === 'unusable') {
      log.warn('the memory of the last primary cannot be used: it is ignored', {
        ...this.#place,
        reason: content.reason,
      });
    }
    if (content.kind !== 'memory') return;
    this.inForce = content.memory;
    this.#saved = content.memory;
    const { primary, term } = content.memory;
    log.info('remembers the last primary', {
      section: this.#section,
      primary: primary.address,
      term,
    });
  }

  get isUnsaved(): boolean {
    return this.#problem !== null;
  }

  propose({ base, memory }: Proposal['asked']): Promise<Proposal['answer']> {
    return this.#inTurn(async () => {
      if (!this.#isFrozen && base === (this.inForce?.version ?? null)) {
        this.#verify(memory);
        if (movesPositionAlone(this.inForce, memory)) this.#take(memory);
        else if ((await this.#save(memory)) !== 'given up') this.#take(memory);
        else return this.#refuse();
        return { isAccepted: true, memory };
      }
      return this.#refuse();
    });
  }

  override(primary: Omit<RememberedPrimary, 'taken'>): Promise<Overridden | null> {
    return this.#inTurn(async () => {
      const before = this.inForce;
      const memory = overridePrimary(before, primary);
      this.#verify(memory);
      const saved = this.#isFrozen ? 'given up' : await this.#save(memory);
      if (saved === 'given up') return null;
      this.#log.warn('an operator has set the primary', {
        section: this.#section,
        primary: primary.address,
        was: before?.primary.address ?? 'none',
      });
      this.#take(memory);
      return { before, memory, isSaved: saved === 'saved' };
    });
  }

  freeze(): void {
    this.#isFrozen = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** A change begins after the answer to the one before was sent, so that a worker receives both in their order. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(change);
    const rest = () => nextTurn();
    this.#last = turn.then(rest, rest);
    return turn;
  }

  /** A memory that cannot be read again would be lost at the next start. */
  #verify(memory: PrimaryMemory): void {
    const version = (this.inForce?.version ?? 0) + 1;
    const isReadable = isDeepStrictEqual(parsePrimaryMemory(formatPrimaryMemory(memory)), memory);
    if (!isReadable || memory.version !== version) throw new Error('this is no next memory');
  }

  #take(memory: PrimaryMemory): void {
    const before = this.inForce;
    this.inForce = memory;
    if (before?.term !== memory.term) {
      this.#log.info('the primary is remembered', {
        section: this.#section,
        primary: memory.primary.address,
        was: before?.primary.address ?? 'none',
        term: memory.term,
      });
    }
    this.#announce(this.#section, memory);
    this.#saveLater();
  }

  /** Answers with the memory in force; once frozen, that is the successor's. */
  #refuse(): Proposal['answer'] {
    const content = this.#isFrozen ? readPrimaryFile(this.#path) : null;
    if (content?.kind === 'memory' && !isDeepStrictEqual(content.memory, this.#saved)) {
      this.#saved = content.memory;
      this.inForce = content.memory;
      this.#announce(this.#section, content.memory);
    }
    return { isAccepted: false, memory: this.inForce };
  }

  #saveLater(): void {
    const isDue = !this.#isFrozen && this.inForce !== this.#saved;
    if (!isDue || this.#timer !== null) return;
    const { lazyMs, retryMs } = this.#saving;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        void this.#inTurn(async () => {
          // A write that took too long may have ended since.
          if (this.inForce === this.#saved) this.#noteProblem(null);
          else if (this.inForce !== null) await this.#save(this.inForce);
          this.#saveLater();
        });
      },
      this.#problem === null ? lazyMs : retryMs,
    );
    this.#timer.unref();
  }

  /** `unsaved`: the file cannot be written, and the memory lives in RAM. `given up`: the keeper was frozen, and the file is unchanged. Never rejects. */
  async #save(memory: PrimaryMemory): Promise<'saved' | 'unsaved' | 'given up'> {
    const outcome = this.#isWriting
      ? 'an earlier write has not ended'
      : await this.#inTime(this.#write(memory));
    if (outcome === 'given up') return outcome;
    this.#noteProblem(outcome === 'saved' ? null : outcome);
    return outcome === 'saved' ? outcome : 'unsaved';
  }

  async #inTime(write: Promise<string>): Promise<string> {
    const ended = new AbortController();
    const { signal } = ended;
    const late = delay(this.#saving.boundMs, 'the disk does not answer', { signal });
    try {
      return await Promise.race([write, late]);
    } finally {
      ended.abort();
    }
  }

  async #write(memory: PrimaryMemory): Promise<string> {
    this.#isWriting = true;
    try {
      this.#warnOfOther();
      const isReplaced = await this.#saving.replace(this.#path, memory, () => !this.#isFrozen);
      if (!isReplaced) return 'given up';
      this.#saved = memory;
      return 'saved';
    } catch (error) {
      return (error as Error).message;
    } finally {
      this.#isWriting = false;
    }
  }

  /** Two instances that share a file would use each other's primaries after a restart. */
  #warnOfOther(): void {
    if (this.#hasWarnedOfOther) return;
    const content = readPrimaryFile(this.#path);
    if (content.kind !== 'memory' || isDeepStrictEqual(content.memory, this.#saved)) return;
    this.#hasWarnedOfOther = true;
    this.#log.warn(
      'another instance writes to the memory of the last primary: give each its own state_dir',
      this.#place,
    );
  }

  #noteProblem(problem: string | null): void {
    const before = this.#problem;
    this.#problem = problem;
    if (problem !== null && before === null) {
      this.#log.warn(
        'the memory of the last primary cannot be saved: it lives as long as this instance',
        { ...this.#place, reason: problem },
      );
    } else if (problem === null && before !== null) {
      this.#log.info('the memory of the last primary is saved again', this.#place);
    }
  }

  get #place() {
    return { section: this.#section, path: this.#path };
  }
}

/** Whether two memories differ only in the primary's position. Such a change may be lost with the machine. */
function movesPositionAlone(before: PrimaryMemory | null, after: PrimaryMemory): boolean {
  if (before === null) return false;
  const { version } = before;
  const { position } = before.primary;
  return isDeepStrictEqual({ ...after, version, primary: { ...after.primary, position } }, before);
}
