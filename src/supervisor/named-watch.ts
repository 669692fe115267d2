// Watches the directories of named statements: `named_watch`, for development.
import { type FSWatcher, watch } from 'node:fs';
import type { Sections } from '../shared/config/config.ts';
import type { Log } from '../shared/process/log.ts';

/** An editor writes a file in several steps, and each of them is an event. */
const settleMs = 100;

/** Calls `changed` a moment after a file in one of the directories has changed. The caller must close it; twice does nothing. */
export function watchDirectories(
  sections: Sections,
  log: Log,
  changed: () => void,
): { readonly close: () => void } {
  const [{ namedWatch }] = sections;
  const watchers: FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  const settle = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, settleMs);
  };
  const directories = new Set(sections.flatMap(({ named }) => (named === null ? [] : [named])));
  for (const directory of namedWatch ? directories : []) {
    const lost = (error: Error) =>
      log.error('a directory of named statements is not watched any more: SIGHUP reads it again', {
        directory,
        reason: error.message,
      });
    try {
      watchers.push(watch(directory, settle).on('error', lost));
    } catch (error) {
      lost(error as Error);
    }
  }
  return {
    close: () => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}
