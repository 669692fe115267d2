// Certificates of an authority that lives for one test, made by openssl.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The paths of a certificate and its key, PEM. */
export type PairFiles = { readonly cert: string; readonly key: string };

/** When a certificate serves (`soon`: until ten days from now); a server's names as openssl writes them, `DNS:localhost,IP:127.0.0.1`. */
export type Wish = {
  readonly when?: keyof typeof dates;
  readonly names?: string;
  readonly algorithm?: keyof typeof algorithms;
};

/** An authority and the pairs that it signs, all in its directory. */
export type Authority = PairFiles & { readonly issue: (name: string, wish?: Wish) => PairFiles };

/** As openssl writes times. */
const inTenDays = new Date(Date.now() + 10 * 24 * 60 * 60 * 1000)
  .toISOString()
  .replace(/[-:T]|\.\d+/g, '');

const dates = {
  now: ['20200101000000Z', '20491231235959Z'],
  past: ['20200101000000Z', '20200102000000Z'],
  soon: ['20200101000000Z', inTenDays],
  future: ['20480101000000Z', '20491231235959Z'],
} as const;

/** Creates an authority whose files begin with `name`. */
export function createAuthority(directory: string, name = 'ca'): Authority {
  const at = (file: string) => join(directory, file);
  const own = { cert: at(`${name}.pem`), key: at(`${name}.key`) };
  const subject = `/CN=${name}`;
  openssl([
    'req',
    '-x509',
    ...newKey('ec'),
    '-subj',
    subject,
    '-keyout',
    own.key,
    '-out',
    own.cert,
  ]);
  const config = at(`${name}.cnf`);
  const settings = {
    new_certs_dir: directory,
    database: at(`${name}.index`),
    rand_serial: 'yes',
    default_md: 'sha256',
    policy: 'any',
    x509_extensions: 'names',
    unique_subject: 'no',
  };
  writeFileSync(settings.database, '');
  return {
    ...own,
    issue: (leaf, wish = {}) => {
      const { when = 'now', names = 'DNS:localhost,IP:127.0.0.1', algorithm = 'ec' } = wish;
      const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
      writeFileSync(
        config,
        `[ca]\ndefault_ca = own\n[own]\n${lines.join('\n')}\n[any]\ncommonName = supplied\n` +
          `[names]\nsubjectAltName = ${names}\n`,
      );
      const files = { cert: at(`${leaf}.pem`), key: at(`${leaf}.key`) };
      const request = at(`${leaf}.csr`);
      openssl([
        'req',
        ...newKey(algorithm),
        '-subj',
        `/CN=${leaf}`,
        '-keyout',
        files.key,
        '-out',
        request,
      ]);
      const [from, to] = dates[when];
      const signing = ['-cert', own.cert, '-keyfile', own.key, '-startdate', from, '-enddate', to];
      const through = ['-in', request, '-out', files.cert];
      openssl(['ca', '-batch', '-notext', '-config', config, ...signing, ...through]);
      return files;
    },
  };
}

const algorithms = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  rsa: ['-newkey', 'rsa:2048'],
} as const;

const newKey = (algorithm: keyof typeof algorithms) => [...algorithms[algorithm], '-nodes'];

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}
