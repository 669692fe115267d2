// A table as text: columns that fit a width together, with cells that take several lines where they must.

/** A cell: its items are separated by commas, and a line may end after each. */
export type Cell = readonly string[];

const gap = 2;

/**
 * Formats a table. The widest columns become narrower until a line has at most `maxWidth` characters. An item is cut only if the
 * longest items of all columns do not fit beside each other.
 * @param rows each with as many cells as there are headings
 */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  maxWidth: number,
): readonly string[] {
  const table = [headings.map((heading) => [heading]), ...rows];
  const columns = headings.map((_, index) => table.map((row) => row[index] ?? []));
  const widths = columns.map((cells) => widest(cells.map((cell) => cell.join(', '))));
  const floors = columns.map((cells) => widest(cells.flatMap(separate)));
  const room = maxWidth - gap * (headings.length - 1);
  narrow(widths, floors, room);
  narrow(
    widths,
    headings.map(() => 1),
    room,
  );
  return table.flatMap((row) => formatRow(row, widths));
}

/** Takes from the widest columns first, and none below its floor. */
function narrow(widths: number[], floors: readonly number[], room: number): void {
  const sum = () => widths.reduce((total, width) => total + width, 0);
  while (sum() > room) {
    const spare = widths.map((width, index) => (width > (floors[index] ?? 0) ? width : 0));
    const index = spare.indexOf(Math.max(...spare));
    const width = spare[index] ?? 0;
    if (width === 0) return;
    widths[index] = width - 1;
  }
}

function formatRow(row: readonly Cell[], widths: readonly number[]): readonly string[] {
  const cells = row.map((cell, index) => wrap(cell, widths[index] ?? 1));
  const height = Math.max(1, ...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, at) =>
    cells
      .map((lines, index) => (lines[at] ?? '').padEnd(widths[index] ?? 1))
      .join(' '.repeat(gap))
      .trimEnd(),
  );
}

function wrap(cell: Cell, width: number): readonly string[] {
  const lines: string[] = [];
  for (const item of separate(cell)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + item.length <= width) {
      lines[lines.length - 1] = `${last} ${item}`;
    } else {
      lines.push(...cut(item, width));
    }
  }
  return lines;
}

/** Cuts behind a space if there is one. */
function cut(item: string, width: number): readonly string[] {
  if (item.length <= width) return [item];
  const space = item.lastIndexOf(' ', width);
  const at = space > 0 ? space : width;
  return [item.slice(0, at), ...cut(item.slice(at).trimStart(), width)];
}

/** The items, each with the comma behind it. */
function separate(cell: Cell): readonly string[] {
  return cell.map((item, index) => (index < cell.length - 1 ? `${item},` : item));
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => text.length));
}
