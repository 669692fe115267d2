// Joins the compiled modules of the command into a few files in dist/program. Node takes longer to find and to link three hundred small
// modules than to run them.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';

/** With these a process or a thread begins, or another program imports them. Each keeps its place. */
const entries = [
  'supervisor/main.js',
  'supervisor/daemon.js',
  'supervisor/listener/listener-thread.js',
  'worker/main.js',
  'worker/watchdog-thread.js',
  // The image's health check reads the configuration by these.
  'supervisor/arguments.js',
  'shared/config/config.js',
  'shared/config/ini-section.js',
] as const;
/** Files that the processes read besides code. */
const resources = [
  'console/index.html',
  'console/uplot-license.txt',
  'console/uplot.css',
  'console/uplot.js',
  'worker/encode/rows.wasm',
];

/**
 * Without indentation and blanks, the package is 40 KB smaller. Names stay, so that a stack trace names functions as the sources do. Lines end
 * after 500 to 1,400 characters, so that a position in a stack trace is narrow, and the line that Node prints with a fault is short.
 */
const small = {
  charset: 'utf8',
  legalComments: 'inline',
  lineLimit: 500,
  minifySyntax: true,
  minifyWhitespace: true,
} as const;

/** Makes dist/program from dist/src. Packages stay outside: they are installed beside it. @param root the checkout */
export async function joinProgram(root: string): Promise<void> {
  const compiled = resolve(root, 'dist/src');
  const program = resolve(root, 'dist/program');
  rmSync(program, { recursive: true, force: true });
  await build({
    entryPoints: entries.map((entry) => join(compiled, entry)),
    outbase: compiled,
    outdir: program,
    chunkNames: 'parts/[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    logLevel: 'warning',
    plugins: [keepPlaces(compiled)],
    ...small,
  });
  for (const name of resources) cpSync(join(compiled, name), join(program, name));
  await joinConsole(join(compiled, 'console'), join(program, 'console'));
}

/** One script and one style for browsers, which would fetch thirty modules one level after the other. The charts remain a separate file. */
async function joinConsole(compiled: string, folder: string): Promise<void> {
  await build({
    entryPoints: ['main.js', 'console.css'].map((name) => join(compiled, name)),
    outdir: folder,
    bundle: true,
    external: ['./uplot.js'],
    format: 'esm',
    logLevel: 'warning',
    ...small,
    // No log has a stack trace of a browser's.
    minifyIdentifiers: true,
  });
}

/** Makes dist/program where a module of dist/src is younger. Otherwise it stays as it is. @param root the checkout */
export async function joinChangedProgram(root: string): Promise<void> {
  const program = join(root, 'dist/program', entries[0]);
  const madeMs = existsSync(program) ? statSync(program).mtimeMs : 0;
  const compiled = join(root, 'dist/src');
  const files = readdirSync(compiled, { recursive: true, encoding: 'utf8' });
  if (files.some((file) => statSync(join(compiled, file)).mtimeMs > madeMs))
    await joinProgram(root);
}

/**
 * Makes `import.meta.url` the address that a module would have in dist/program on its own, so that addresses relative to it stay right. A comment
 * names each module at its place, for readers of stack traces.
 */
function keepPlaces(compiled: string): Plugin {
  return {
    name: 'places of modules',
    setup: ({ onLoad }) => {
      onLoad({ filter: /\.js$/ }, ({ path }) => {
        const name = relative(compiled, path);
        const place = JSON.stringify(`$1${name}`);
        const address = `import.meta.url.replace(/(.*\\/program\\/).*/, ${place})`;
        const text = readFileSync(path, 'utf8').replaceAll('import.meta.url', address);
        return { contents: text.replace(/^(?:#!.*\n)?/, (start) => `${start}/*! ${name} */\n`) };
      });
    },
  };
}
