// A package of rpm, by rpmbuild: a spec that copies the files, and the scripts.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Contents, description, oldestNode, runPacker, summary, wrap } from './contents.ts';
import { configurationFiles, listRuntimePackages, type PackagedFile } from './files.ts';

/** The sections of the spec with a script: names of files in scripts/packaging/scripts, without `rpm-`. */
const scripts = ['pre', 'preun', 'posttrans', 'postun'] as const;

/** Packs it, and returns the package's path. Throws if rpmbuild fails. */
export function packRpm(contents: Contents): string {
  const { work, out, version, revision } = contents;
  const spec = join(work, 'dbhttpd.spec');
  writeFileSync(spec, describe(contents));
  const top = join(work, 'rpmbuild');
  mkdirSync(top);
  const settings = {
    _topdir: top,
    // Nothing of this machine, no later time than the sources', no change to what was built.
    _buildhost: 'localhost',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
    _build_id_links: 'none',
    __os_install_post: '%{nil}',
    __spec_install_pre: '%{nil}',
    // Every rpm reads both.
    _binary_payload: contents.effort === 'high' ? 'w6.xzdio' : 'w1.gzdio',
  };
  const defines = Object.entries(settings).flatMap(([name, text]) => [
    '--define',
    `${name} ${text}`,
  ]);
  runPacker('rpmbuild', ['-bb', '--quiet', ...defines, spec], contents);
  const name = `dbhttpd-${version}-${revision}.noarch.rpm`;
  copyFileSync(join(top, 'RPMS/noarch', name), join(out, name));
  return join(out, name);
}

function describe(contents: Contents): string {
  const { version, revision, license, maintainer, repository, root, files } = contents;
  const licenses = new Set([license, ...listRuntimePackages().map((one) => one.license)]);
  return `Name: dbhttpd
Version: ${version}
Release: ${revision}
Summary: ${summary}
License: ${[...licenses].sort().join(' AND ')}
${repository === '' ? '' : `URL: ${repository}\n`}${maintainer === '' ? '' : `Packager: ${maintainer}\n`}BuildArch: noarch
AutoReqProv: no
# Fedora and Red Hat name what a Node can run. NodeSource's packages have the epoch 2.
Requires: (nodejs(engine) >= ${oldestNode} or nodejs >= 2:${oldestNode})
Requires: util-linux
Requires(pre): (systemd or shadow-utils)

%description
${description.map((text) => wrap(text, 76).join('\n')).join('\n\n')}

%install
cp -a ${root}/. %{buildroot}/

${scripts.map((name) => `%${name}\n${readFileSync(`scripts/packaging/scripts/rpm-${name}`, 'utf8')}`).join('\n')}
%files
%defattr(-,root,root,-)
${files.map(listFile).join('\n')}
${[...listFolders(files)].join('\n')}
`;
}

function listFile({ path }: PackagedFile): string {
  const isConfiguration = configurationFiles.some((known) => known === path);
  const owner = path === '/etc/dbhttpd.ini' ? '%attr(0640,root,dbhttpd) ' : '';
  if (isConfiguration) return `${owner}%config(noreplace) ${path}`;
  if (path.startsWith('/usr/share/doc/')) return `%doc "${path}"`;
  return `"${path}"`;
}

/** The folders that the package owns: its two, and those below. */
function listFolders(files: readonly PackagedFile[]): ReadonlySet<string> {
  const owned = files.flatMap(({ path }) => {
    const parts = path.split('/').slice(0, -1);
    return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  });
  return new Set(
    owned
      .filter((folder) => /^\/usr\/(?:lib|share\/doc)\/dbhttpd(?:\/|$)/.test(folder))
      .map((folder) => `%dir "${folder}"`),
  );
}
