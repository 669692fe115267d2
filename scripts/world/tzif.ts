// Reads compiled time zone files (TZif, RFC 8536): when a zone's clocks change, and to what.

/** The offset that a zone has from this moment on (seconds since 1970, UTC). */
export type Transition = {
  readonly at: number;
  readonly offsetSeconds: number;
  readonly isDst: boolean;
  readonly abbreviation: string;
};

const headerBytes = 44;

/** The transitions of a zone, in order. Throws if the bytes are not a TZif file. */
export function parseTzif(file: Buffer): Transition[] {
  if (file.toString('latin1', 0, 4) !== 'TZif') throw new Error('not a TZif file');
  const version = file[4] ?? 0;
  // From version 2 on, the file has the data twice, the second time with 64-bit moments.
  if (version === 0) return parseBlock(file, 4);
  return parseBlock(file.subarray(headerBytes + blockBytes(file, 4)), 8);
}

function counts(block: Buffer) {
  const [isUtc, isStandard, leap, time, type, char] = [20, 24, 28, 32, 36, 40].map((at) =>
    block.readUInt32BE(at),
  );
  return {
    isUtc: isUtc ?? 0,
    isStandard: isStandard ?? 0,
    leap: leap ?? 0,
    time: time ?? 0,
    type: type ?? 0,
    char: char ?? 0,
  };
}

function blockBytes(block: Buffer, momentBytes: number): number {
  const { isUtc, isStandard, leap, time, type, char } = counts(block);
  return time * (momentBytes + 1) + type * 6 + char + leap * (momentBytes + 4) + isStandard + isUtc;
}

function parseBlock(block: Buffer, momentBytes: number): Transition[] {
  const { time, type } = counts(block);
  const kinds = headerBytes + time * momentBytes;
  const types = kinds + time;
  const names = types + type * 6;
  return Array.from({ length: time }, (_, index) => {
    const moment = headerBytes + index * momentBytes;
    const kind = types + (block[kinds + index] ?? 0) * 6;
    const name = names + (block[kind + 5] ?? 0);
    return {
      at: momentBytes === 8 ? Number(block.readBigInt64BE(moment)) : block.readInt32BE(moment),
      offsetSeconds: block.readInt32BE(kind),
      isDst: block[kind + 4] === 1,
      abbreviation: block.toString('latin1', name, block.indexOf(0, name)),
    };
  });
}
