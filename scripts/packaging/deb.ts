// A package of Debian, by dpkg-deb: control, checksums, configuration files, scripts.
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Contents, description, oldestNode, runPacker, summary, wrap } from './contents.ts';
import { compress, configurationFiles, type PackagedFile } from './files.ts';

/** The field is mandatory. `.invalid` is reserved by RFC 2606: nothing can be sent there. */
const unknownMaintainer = 'unknown <unknown@dbhttpd.invalid>';

/** Packs it, and returns the package's path. Throws if dpkg-deb fails. */
export function packDeb(contents: Contents): string {
  const { root, out } = contents;
  const version = `${contents.version}-${contents.revision}`;
  const control = join(root, 'DEBIAN');
  mkdirSync(control);
  const changelog = addChangelog(contents, version);
  const files = [...contents.files, changelog];
  writeFileSync(join(control, 'control'), describe(contents, version, files));
  writeFileSync(join(control, 'conffiles'), configurationFiles.map((path) => `${path}\n`).join(''));
  writeFileSync(join(control, 'md5sums'), listSums(files));
  for (const name of ['postinst', 'prerm', 'postrm']) {
    copyFileSync(`scripts/packaging/scripts/deb-${name}`, join(control, name));
    chmodSync(join(control, name), 0o755);
  }
  for (const name of ['control', 'conffiles', 'md5sums']) chmodSync(join(control, name), 0o644);
  chmodSync(control, 0o755);
  const path = join(out, `dbhttpd_${version}_all.deb`);
  // xz: dpkg of every Debian reads it. One thread, since the number of threads changes the bytes.
  const compression = contents.effort === 'high' ? ['-Zxz', '--threads-max=1'] : ['-Zgzip', '-z1'];
  const form = ['--root-owner-group', ...compression];
  runPacker('dpkg-deb', [...form, '--build', root, path], contents);
  return path;
}

function describe(
  { maintainer, repository }: Contents,
  version: string,
  files: readonly PackagedFile[],
): string {
  const bytes = files.reduce((sum, entry) => sum + ('link' in entry ? 0 : entry.content.length), 0);
  const paragraphs = description.map((text) => wrap(text, 76).map((line) => ` ${line}`));
  return [
    'Package: dbhttpd',
    `Version: ${version}`,
    'Architecture: all',
    `Maintainer: ${maintainer === '' ? unknownMaintainer : maintainer}`,
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    `Depends: nodejs (>= ${oldestNode}), systemd | systemd-standalone-sysusers | adduser`,
    'Suggests: default-mysql-server, logrotate',
    'Section: database',
    'Priority: optional',
    ...(repository === '' ? [] : [`Homepage: ${repository}`]),
    `Description: ${summary}`,
    ...paragraphs.flatMap((lines, at) => (at === 0 ? lines : [' .', ...lines])),
    '',
  ].join('\n');
}

/** Debian's own changelog: where the version's is. Writes it into the folder. */
function addChangelog(contents: Contents, version: string): PackagedFile {
  const { root, epochSeconds, maintainer } = contents;
  const day = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000');
  const who = maintainer === '' ? unknownMaintainer : maintainer;
  const text = `dbhttpd (${version}) unstable; urgency=medium

  * The changes are in /usr/share/doc/dbhttpd/CHANGELOG.md.

 -- ${who}  ${day}
`;
  const path = '/usr/share/doc/dbhttpd/changelog.Debian.gz';
  const content = compress(Buffer.from(text));
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), content, { mode: 0o644 });
  return { path, mode: 0o644, content };
}

/** Checksums of all files except those that the administrator may change. */
function listSums(files: readonly PackagedFile[]): string {
  const isConfiguration = (path: string) => configurationFiles.some((known) => known === path);
  return files
    .flatMap((entry) => ('link' in entry || isConfiguration(entry.path) ? [] : [entry]))
    .map(({ path, content }) => [path.slice(1), createHash('md5').update(content).digest('hex')])
    .map(([path, sum]) => `${sum}  ${path}\n`)
    .join('');
}
