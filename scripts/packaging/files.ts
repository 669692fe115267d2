// The files of a system package: the compiled command with the npm packages that it needs at run time, its unit, its configuration, its
// manual, its completions and its documents.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** The two forms of package. */
export const packageKinds = ['deb', 'rpm'] as const;
export type PackageKind = (typeof packageKinds)[number];

/** A file, by its absolute path on the machine that installs it. `link`: a symbolic link with this target. */
export type PackagedFile = { readonly path: string } & (
  | { readonly mode: number; readonly content: Buffer }
  | { readonly link: string }
);

/** Files that belong to the administrator once they are installed: no upgrade overwrites them. */
export const configurationFiles = ['/etc/dbhttpd.ini', '/etc/logrotate.d/dbhttpd'] as const;

/** The folder of the command and its npm packages. */
export const home = '/usr/lib/dbhttpd';
const documents = '/usr/share/doc/dbhttpd';

/** One npm package that the command needs at run time, by the lock file. */
type RuntimePackage = {
  readonly folder: string;
  readonly version: string;
  readonly license: string;
};

/** Lists the npm packages of the lock file that the command needs at run time, without those that contain types only. */
export function listRuntimePackages(): readonly RuntimePackage[] {
  type Locked = Readonly<{
    version: string;
    license?: string;
    dev?: boolean;
    devOptional?: boolean;
  }>;
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Readonly<Record<string, Locked>>;
  };
  return Object.entries(packages)
    .filter(([folder, { dev, devOptional }]) => folder !== '' && dev !== true && !devOptional)
    .filter(([folder]) => !/\/(?:@types\/|undici-types$)/.test(folder))
    .map(([folder, { version, license = 'unknown' }]) => ({ folder, version, license }));
}

/** Lists all files of a package, with what they contain. Throws if there is no build. */
export function listFiles(kind: PackageKind): readonly PackagedFile[] {
  const plain = (path: string, source: string): PackagedFile => file(path, readFileSync(source));
  const completions = kind === 'deb' ? 'vendor-completions' : 'site-functions';
  return [
    { path: '/usr/bin/dbhttpd', link: '../lib/dbhttpd/dist/program/supervisor/main.js' },
    plain(`${home}/package.json`, 'package.json'),
    ...listTree('dist/program', /\.(?:js|css|html|txt|wasm)$/).map((source) =>
      source === 'dist/program/supervisor/main.js'
        ? file(join(home, source), readFileSync(source), 0o755)
        : plain(join(home, source), source),
    ),
    ...listRuntimePackages().flatMap(({ folder }) =>
      listTree(folder, /\.(?:[cm]?js|json|wasm)$|(?:^|\/)(?:LICENSE|LICENCE|NOTICE)[^/]*$/i)
        .filter((source) => !source.slice(folder.length).includes('/node_modules/'))
        .map((source) => plain(join(home, source), source)),
    ),
    file(
      `${home}/restart-instances`,
      readFileSync('scripts/packaging/scripts/restart-instances'),
      0o755,
    ),
    file('/etc/dbhttpd.ini', readFileSync('deploy/dbhttpd.ini'), 0o640),
    plain('/etc/logrotate.d/dbhttpd', 'deploy/logrotate/dbhttpd'),
    plain('/usr/lib/sysusers.d/dbhttpd.conf', 'deploy/systemd/dbhttpd-sysusers.conf'),
    ...['dbhttpd@.service', 'dbhttpd@.socket'].map((unit) =>
      plain(`/usr/lib/systemd/system/${unit}`, `deploy/systemd/${unit}`),
    ),
    plain('/usr/share/bash-completion/completions/dbhttpd', 'deploy/completions/dbhttpd.bash'),
    plain(`/usr/share/zsh/${completions}/_dbhttpd`, 'deploy/completions/_dbhttpd'),
    plain('/usr/share/fish/vendor_completions.d/dbhttpd.fish', 'deploy/completions/dbhttpd.fish'),
    file('/usr/share/man/man8/dbhttpd.8.gz', compress(readFileSync('docs/reference/dbhttpd.8'))),
    ...['README.md', 'CHANGELOG.md', '.github/SECURITY.md', ...listDocuments()].map((source) =>
      plain(join(documents, source), source),
    ),
    file(`${documents}/copyright`, Buffer.from(describeRights())),
  ];
}

/** A file of mode 0644. */
function file(path: string, content: Buffer, mode = 0o644): PackagedFile {
  return { path, mode, content };
}

/** Compresses without a name and a time, as gzip -9n does. */
export function compress(content: Buffer): Buffer {
  return gzipSync(content, { level: 9 });
}

/** Documents for people who have installed it, and the examples of deploy/. */
function listDocuments(): readonly string[] {
  const isForContributors = (source: string) => source.startsWith('docs/contributing/');
  return [
    ...listTree('docs', /\.(?:md|svg|go|php|py)$/).filter((source) => !isForContributors(source)),
    ...listTree('deploy', /^/),
  ];
}

/** The paths of the files below a folder whose path matches, in a fixed order. */
function listTree(folder: string, pattern: RegExp): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => pattern.test(path))
    .sort();
}

/** The licence, and those of the npm packages inside. */
function describeRights(): string {
  const packages = listRuntimePackages().map(({ folder, version, license }) => {
    return `  ${folder.slice('node_modules/'.length)} ${version}: ${license}`;
  });
  return `dbhttpd:

${readFileSync('LICENSE', 'utf8')}
npm packages in ${home}/node_modules, each with its licence and its authors in its folder:

${packages.join('\n')}

On Debian, /usr/share/common-licenses/Apache-2.0 has the text of Apache-2.0.
`;
}
