// deploy/compose.yaml is not started by any test. Everything that it and its files name exists, and agrees with the program.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { parseDocument } from 'yaml';
import { formatFault, loadConfig } from '../../../../src/shared/config/load-config.ts';
import { currentPlace } from '../../../../src/shared/config/machine-defaults.ts';
import { parseArguments } from '../../../../src/supervisor/arguments.ts';
import { environmentMeanings } from '../../../../src/supervisor/help.ts';
import { dashboardPath } from '../../../support/deployed-watching.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-compose-'));
after(() => rmSync(directory, { recursive: true }));

type Service = {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
};
type Compose = {
  readonly services: Readonly<Record<'gateway' | 'database' | 'prometheus' | 'grafana', Service>>;
  readonly secrets: Readonly<Record<string, { readonly environment: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
};

/** Parses a file. Fails at what is no YAML, and at what a parser warns of. */
function parse<Content>(path: string): Content {
  const document = parseDocument(readFileSync(path, 'utf8'));
  assert.deepEqual([...document.errors, ...document.warnings], [], path);
  return document.toJS() as Content;
}

const compose = parse<Compose>('deploy/compose.yaml');
const { gateway, database, prometheus, grafana } = compose.services;
const services = Object.entries<Service>(compose.services);
const dockerfile = readFileSync('deploy/docker/Dockerfile', 'utf8');

/** The mounts of a service: a path of the repository or the name of a volume, and its place in the container. */
function mountsOf({ volumes = [] }: Service): readonly { source: string; place: string }[] {
  return volumes.map((text) => {
    const [source = '', place = ''] = text.split(':');
    return { source, place };
  });
}

/** The file of the repository that a service has at this place. */
function mountedAt(service: Service, place: string): string {
  const mount = mountsOf(service).find((one) => one.place === place);
  assert.ok(mount, `nothing is mounted at ${place}`);
  return join('deploy', mount.source);
}

test('every path, volume, secret and service that it names exists', () => {
  for (const [name, service] of services) {
    for (const { source } of mountsOf(service)) {
      if (source.startsWith('./')) assert.ok(existsSync(join('deploy', source)), source);
      else assert.ok(source in compose.volumes, `${name}: ${source}`);
    }
    for (const secret of service.secrets ?? []) assert.ok(secret in compose.secrets, secret);
    const needed = service.depends_on ?? [];
    const names = Array.isArray(needed) ? needed : Object.keys(needed);
    for (const one of names) assert.ok(one in compose.services, one);
  }
  const { context = '', dockerfile: path = '' } = gateway.build ?? {};
  assert.equal(join('deploy', context), '.');
  assert.ok(existsSync(join('deploy', context, path)));
});

test('no secret is in it: each comes from a variable without which it does not start', () => {
  const secret = /PASSWORD|TOKEN/;
  const variables = services.flatMap(([, { environment = {} }]) =>
    Object.entries(environment)
      .filter(([name]) => secret.test(name) && !name.includes('RANDOM'))
      .map(([name, value]) => {
        const [, variable] = /^\$\{(\w+):\?[^}]+\}$/.exec(value) ?? [];
        assert.ok(variable, `${name} is ${value}`);
        return variable;
      }),
  );
  const known = [...variables, ...Object.values(compose.secrets).map((one) => one.environment)];
  const comment = readFileSync('deploy/compose.yaml', 'utf8').split('\nname:')[0] ?? '';
  const described = [...comment.matchAll(/\b(\w+)=…/g)].map(([, name]) => name);
  assert.deepEqual([...new Set(known)].sort(), [...new Set(described)].sort());
  for (const name of Object.keys(gateway.environment ?? {})) assert.ok(name in environmentMeanings);
});

test('the gateway accepts its command line and its file, and finds the database', () => {
  const entry = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
  const order = parseArguments([...entry.slice(2), ...(gateway.command ?? [])]);
  assert.equal(order.kind, 'foreground');
  const { configPath, sections } = order as Extract<typeof order, { kind: 'foreground' }>;
  const copy = join(directory, 'dbhttpd.ini');
  // Others may read it in the container, too.
  writeFileSync(copy, readFileSync(mountedAt(gateway, configPath)), { mode: 0o644 });
  const env = { DBHTTPD_PASSWORD: 'secret', DBHTTPD_TOKEN: 'token' };
  const loaded = loadConfig({ configPath: copy, sections, beside: [] }, env, currentPlace());
  const faults = loaded.kind === 'invalid' ? loaded.faults.map(formatFault).join() : '';
  assert.equal(loaded.kind, 'ok', faults);
  const text = readFileSync(copy, 'utf8');
  const readKey = (key: string) => new RegExp(`^${key} = (.*)$`, 'm').exec(text)?.[1] ?? '';
  assert.ok(readKey('host') in compose.services);
  assert.equal(readKey('database'), database.environment?.MARIADB_DATABASE);
  assert.equal(readKey('user'), database.environment?.MARIADB_USER);
  assert.equal(gateway.environment?.DBHTTPD_PASSWORD, database.environment?.MARIADB_PASSWORD);
  const [, port] = readKey('listen').split(':');
  assert.equal(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1], port);
  assert.deepEqual(gateway.ports, [`127.0.0.1:${port}:${port}`]);
});

test('Prometheus scrapes the gateway with its token, and has the alerts', () => {
  type Scrape = {
    readonly job_name: string;
    readonly authorization: { readonly credentials_file: string };
    readonly static_configs: readonly { readonly targets: readonly string[] }[];
  };
  type Settings = {
    readonly rule_files: readonly string[];
    readonly scrape_configs: readonly Scrape[];
  };
  const settings = parse<Settings>(mountedAt(prometheus, '/etc/prometheus/prometheus.yml'));
  const usual = parse<Settings>('deploy/prometheus/prometheus.yml');
  for (const place of settings.rule_files) parse(mountedAt(prometheus, place));
  const [scrape, ...further] = settings.scrape_configs;
  assert.ok(scrape);
  assert.deepEqual(further, []);
  // The alerts and the dashboard look for this name.
  assert.equal(scrape.job_name, usual.scrape_configs[0]?.job_name);
  assert.deepEqual(scrape.static_configs, [{ targets: ['gateway:9090'] }]);
  const secrets = (prometheus.secrets ?? []).map((name) => `/run/secrets/${name}`);
  assert.ok(secrets.includes(scrape.authorization.credentials_file));
  assert.equal(compose.secrets.token?.environment, 'DBHTTPD_TOKEN');
});

test('Grafana has the dashboard of the repository, and Prometheus as the source of its data', () => {
  const provisioning = '/etc/grafana/provisioning';
  const { datasources } = parse<{ datasources: readonly Readonly<Record<string, unknown>>[] }>(
    mountedAt(grafana, `${provisioning}/datasources/dbhttpd.yml`),
  );
  const [port = ''] = (prometheus.ports ?? []).map((text) => text.split(':').at(-1));
  assert.deepEqual(
    datasources.map(({ type, url }) => ({ type, url })),
    [{ type: 'prometheus', url: `http://prometheus:${port}` }],
  );
  const { providers } = parse<{ providers: readonly { options: { path: string } }[] }>(
    mountedAt(grafana, `${provisioning}/dashboards/dbhttpd.yml`),
  );
  const [folder = ''] = providers.map(({ options }) => options.path);
  const mount = mountsOf(grafana).find(({ place }) => dirname(place) === folder);
  assert.equal(join('deploy', mount?.source ?? ''), dashboardPath);
});

test('its images have a fixed version', () => {
  for (const [, { image }] of services) {
    if (image !== undefined) assert.match(image, /^[\w./-]+:v?\d+\.\d+(?:\.\d+)?$/);
  }
});
