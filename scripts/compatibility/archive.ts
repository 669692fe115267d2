// Reads from apt's sources which mirror this machine takes Debian's packages from, and the keys that it trusts for it.

/** An archive of packages. */
export type Archive = {
  readonly uri: string;
  /** The file of keys; null: those that apt trusts for all. */
  readonly keyring: string | null;
};

/** A file of apt's sources: `.list` has one source a line, `.sources` paragraphs of fields (sources.list(5)). */
export type SourcesFile = { readonly name: string; readonly text: string };

type Source = Archive & { readonly suites: readonly string[] };

/** The archive that serves `suite`, the system's own release; null if none of the files names it. */
export function findArchive(files: readonly SourcesFile[], suite: string): Archive | null {
  const found = files
    .flatMap(({ name, text }) =>
      name.endsWith('.sources') ? readParagraphs(text) : readLines(text),
    )
    .find(({ suites }) => suites.includes(suite));
  return found === undefined ? null : { uri: found.uri, keyring: found.keyring };
}

function readLines(text: string): Source[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+\S/.exec(line);
    if (match === null) return [];
    const [, options = '', uri = '', suite = ''] = match;
    const keyring = /(?:^|\s)signed-by=(\/\S+)/i.exec(options)?.[1] ?? null;
    return [{ uri, keyring, suites: [suite] }];
  });
}

function readParagraphs(text: string): Source[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .split(/\n\s*\n/)
    .flatMap((paragraph) => {
      const field = (name: string) => {
        const match = new RegExp(`^${name}:[ \\t]*(.*(?:\\n[ \\t]+.*)*)`, 'im').exec(paragraph);
        return (match?.[1] ?? '').split(/\s+/).filter((word) => word !== '');
      };
      const [uri] = field('URIs');
      const isOff = field('Enabled')[0] === 'no' || !field('Types').includes('deb');
      if (uri === undefined || isOff) return [];
      const keyring = field('Signed-By')[0] ?? '';
      // The field may also hold the key itself. Then the keys that apt trusts for all sources must do.
      return [{ uri, keyring: keyring.startsWith('/') ? keyring : null, suites: field('Suites') }];
    });
}
