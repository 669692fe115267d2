// Numbers as the labels of axes and tables: counts, sizes, times.

function trim(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** `300`, `10k`, `1M`. */
export function formatCount(value: number): string {
  if (value >= 1e6) return `${trim(value / 1e6)}M`;
  return value >= 1e3 ? `${trim(value / 1e3)}k` : trim(value);
}

/** `64 B`, `4 KiB`, `1 MiB`. */
export function formatSize(value: number): string {
  const steps = ['B', 'KiB', 'MiB', 'GiB'];
  const step = Math.min(steps.length - 1, Math.floor(Math.log2(value) / 10 + 1e-9));
  return `${trim(value / 1024 ** step)} ${steps[step]}`;
}

/** `52 µs`, `1.3 ms`, `2 s`. */
export function formatMicros(value: number): string {
  if (value >= 1e6) return `${trim(value / 1e6)} s`;
  return value >= 1e3 ? `${trim(value / 1e3)} ms` : `${trim(value)} µs`;
}
