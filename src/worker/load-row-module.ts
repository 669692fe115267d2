// The WebAssembly of the rows from its file, where this machine can run it.
// Must not know what rows are.
import { readFileSync } from 'node:fs';
import type { Log } from '../shared/process/log.ts';
import { RowModule } from './encode/row-module.ts';

/**
 * Loads the module with an arena of so many bytes. Null, with a word in the log, where it cannot run: rows are then
 * written one by one, which more than doubles the CPU of large results.
 */
export function loadRowModule(log: Log, arenaBytes: number): RowModule | null {
  try {
    return new RowModule(readFileSync(new URL('encode/rows.wasm', import.meta.url)), arenaBytes);
  } catch (error) {
    log.warn('rows are written without WebAssembly', { reason: (error as Error).message });
    return null;
  }
}
