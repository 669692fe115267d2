// A set that keeps no reference to removed members.

/** A member of an indexed set, of one at a time. It holds its own index, or -1 outside of a set. */
export interface Indexed {
  index: number;
}

/**
 * A set for members that come and go with each request. A JavaScript Set whose members change leaves its
 * outgrown tables behind, each with a pointer to the next and with the members that it held: once such a table is
 * in V8's old space they survive every collection of young garbage. Of what a point query makes 40 % survived
 * with a Set, 1 % with this, and its CPU fell from 34 to 19 µs (64 clients, one worker).
 */
export class IndexedSet<Member extends Indexed> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    member.index = this.#members.push(member) - 1;
  }

  /** Whether it is in this one. */
  has(member: Member): boolean {
    return this.#members[member.index] === member;
  }

  /** Takes a member out; false: it was not in it. The order of the others may change. */
  delete(member: Member): boolean {
    const { index } = member;
    if (this.#members[index] !== member) return false;
    const last = this.#members.pop() as Member;
    if (last !== member) {
      this.#members[index] = last;
      last.index = index;
    }
    member.index = -1;
    return true;
  }

  /** The members as of now: they may leave meanwhile. */
  [Symbol.iterator](): Iterator<Member> {
    return [...this.#members][Symbol.iterator]();
  }
}
