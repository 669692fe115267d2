// Where the cells of a row packet stand (MySQL's text protocol: length-encoded strings). Hot: nothing is allocated.
// Must not know what a cell becomes.

/** The first byte of a cell that is NULL. */
export const nullMarker = 0xfb;

/** A document made of such a row would show cells that the database does not hold. */
export const rowLengthFault = 'a row is not as long as its cells';

/** How many bytes tell the length of the cell that begins at `position`. */
export function lengthBytes(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return 1;
  return first === 0xfc ? 3 : first === 0xfd ? 4 : 9;
}

/** How long the cell that begins at `position` is, without the bytes that tell it. */
export function cellLength(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return first;
  if (first === 0xfc) return source.readUInt16LE(position + 1);
  if (first === 0xfd) return source.readUIntLE(position + 1, 3);
  return Number(source.readBigUInt64LE(position + 1));
}
