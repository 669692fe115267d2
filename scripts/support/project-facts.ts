// Facts about the project that only a person can give, and the texts and package fields that contain them once they are known.
import { readFileSync } from 'node:fs';

/** An empty text: not known yet. */
export type ProjectFacts = {
  /** The public address of the source, without `.git`: https://host/owner/name. */
  readonly repository: string;
  /** The address for reports of security faults: of mail, or of a page with a form (https). */
  readonly securityContact: string;
  /** The name and the address of mail of the person who answers for releases and packages: `Name <name@host>`. */
  readonly maintainer: string;
  /** The person or the company that has the rights, as LICENSE names it. */
  readonly licenseHolder: string;
};

const place = 'docs/project-facts.json';

/** Reads the facts of this checkout. Throws if the file has another form. */
export function readProjectFacts(): ProjectFacts {
  return parseProjectFacts(readFileSync(new URL(`../../../${place}`, import.meta.url), 'utf8'));
}

const forms = {
  repository: /^https:\/\/[^\s/]+\/\S*[^\s/]$/,
  security_contact: /^(?:[^\s@]+@[^\s@]+|https:\/\/\S+)$/,
  maintainer: /^[^<>\n]+ <[^\s@<>]+@[^\s@<>]+>$/,
  license_holder: /^\S(?:.*\S)?$/,
} as const;

/** Parses the file's text. Throws if a fact is missing, unknown or malformed. */
export function parseProjectFacts(text: string): ProjectFacts {
  const given = JSON.parse(text) as Record<string, unknown>;
  const unknown = Object.keys(given).filter((name) => !(name in forms));
  if (unknown.length > 0) throw new Error(`${place}: unknown: ${unknown.join(', ')}`);
  const take = (name: keyof typeof forms): string => {
    const value = given[name];
    if (typeof value === 'string' && (value === '' || forms[name].test(value))) return value;
    throw new Error(`${place}: ${name} is ${JSON.stringify(value)}`);
  };
  return {
    repository: take('repository'),
    securityContact: take('security_contact'),
    maintainer: take('maintainer'),
    licenseHolder: take('license_holder'),
  };
}

/** The names of the facts that are not known yet, as the file has them. */
export function listUnknownFacts(facts: ProjectFacts): readonly string[] {
  const given: Readonly<Record<keyof typeof forms, string>> = {
    repository: facts.repository,
    security_contact: facts.securityContact,
    maintainer: facts.maintainer,
    license_holder: facts.licenseHolder,
  };
  return Object.entries(given).flatMap(([name, value]) => (value === '' ? [name] : []));
}

/** LICENSE's text with the holder of the rights. While that is not known, the text names the authors. */
export function completeLicense(text: string, { licenseHolder }: ProjectFacts): string {
  const holder = licenseHolder === '' ? 'the dbhttpd authors' : licenseHolder;
  return text.replace(
    /^(Copyright \(c\) [\d-]+) .*$/m,
    (_line, year: string) => `${year} ${holder}`,
  );
}

/** Says where to report a security fault. */
export function describeReporting({ repository, securityContact }: ProjectFacts): string {
  const ways = [
    ...(securityContact === '' ? [] : [`write to <${securityContact}>`]),
    ...(isOnGithub(repository)
      ? [`use [*Report a vulnerability*](${repository}/security/advisories/new) on GitHub`]
      : []),
  ].join(', or ');
  if (ways !== '') return `To report a fault, ${ways}.`;
  return (
    'This copy of the program names no address for reports. ' +
    'Report in private to the person or the company from which you have it.'
  );
}

/** The command that fetches the source, or nothing. */
export function describeSource({ repository }: ProjectFacts): string {
  if (repository === '') return '';
  const name = repository.split('/').at(-1);
  return `    git clone ${repository} && cd ${name}`;
}

/** The label of an image that names its source, or nothing. */
export function describeImageSource({ repository }: ProjectFacts): string {
  return repository === '' ? '' : `LABEL org.opencontainers.image.source="${repository}"`;
}

/** package.json's text with the fields that follow from the facts, and without those that do not. */
export function completePackage(text: string, { repository, maintainer }: ProjectFacts): string {
  const {
    homepage: _h,
    repository: _r,
    bugs: _b,
    author: _a,
    ...rest
  } = JSON.parse(text) as Fields;
  const known = {
    ...(maintainer !== '' && { author: maintainer }),
    ...(repository !== '' && {
      homepage: `${repository}#readme`,
      repository: { type: 'git', url: `git+${repository}.git` },
      bugs: `${repository}/issues`,
    }),
  };
  const fields = Object.entries(rest).flatMap(([name, value]) =>
    name === 'license' ? [[name, value], ...Object.entries(known)] : [[name, value]],
  );
  return `${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`;
}

type Fields = Readonly<Record<string, unknown>>;

function isOnGithub(repository: string): boolean {
  return repository.startsWith('https://github.com/');
}
