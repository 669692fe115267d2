// A file of clients is valid, or every fault is reported with its line, and no report contains a digest.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { type Client, defaultClient, permissions } from '../../../../src/shared/clients/client.ts';
import {
  type ClientFault,
  type ClientsSetting,
  parseClients,
} from '../../../../src/shared/config/clients-file.ts';

const digest = (token: string) => createHash('sha256').update(token).digest('hex');
const [one, two, three] = ['one', 'two', 'three'].map(digest) as [string, string, string];

const setting: ClientsSetting = {
  served: ['world', 'shop'],
  tokens: ['of the section'],
  hasKeys: true,
  exposure: null,
};

function parse(text: string, changed: Partial<ClientsSetting> = {}) {
  return parseClients(text, { ...setting, ...changed });
}

function valid(text: string, changed: Partial<ClientsSetting> = {}) {
  const parsed = parse(text, changed);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.clients;
}

const format = ({ section, key, line, problem }: ClientFault) =>
  `${section === null ? '' : `[${section}] `}${key ?? '-'} ${line ?? '-'}: ${problem}`;

function faultsOf(text: string, changed: Partial<ClientsSetting> = {}): readonly string[] {
  const parsed = parse(text, changed);
  return parsed.ok ? [] : parsed.faults.map(format);
}

const permanent: Omit<Client, 'name' | 'allow'> = defaultClient;

test('reads every key of a client, with comments and digests in capitals', () => {
  const text = `\uFEFF; who may do what
[web]
allow         = named, sql, batch   ; required
token_sha256  = ${one.toUpperCase()}, ${two} # two while one is being replaced
jwt           = realm_access.roles: web-user, scope: "a, b" ; both must hold
jwt           = 'https://example.com/kind' : it's.no
`;
  // A quote within a bare value is a fault; the rest of the line is not lost.
  assert.match(faultsOf(text).join(), /^\[web\] jwt 6: has text after a value/);
  const { clients, anonymous } =
    valid(`${text.replace("it's.no", 'x:y')}may_claim = customer_id, tenant
sections = shop, world
read_only = on
share = 4
max_in_flight = 8
queue = 0
max_rows = 100
max_result_bytes = 1MiB
statement_timeout = 5s
max_wait = 500ms
expires = 2027-01-01
`);
  assert.equal(anonymous, null);
  assert.deepEqual(clients, [
    {
      name: 'web',
      allow: ['sql', 'named', 'batch'],
      tokenDigests: [one, two],
      conditions: [
        { path: ['realm_access', 'roles'], value: 'web-user' },
        { path: ['scope'], value: 'a, b' },
        { path: ['https://example.com/kind'], value: 'x:y' },
      ],
      mayClaim: ['customer_id', 'tenant'],
      sections: ['world', 'shop'],
      readOnly: true,
      share: 4,
      maxInFlight: 8,
      queue: 0,
      maxRows: 100,
      maxResultBytes: 1024 ** 2,
      statementTimeoutMs: 5000,
      maxWaitMs: 500,
      expiresAt: Date.UTC(2027, 0, 1),
    },
  ]);
});

test('keeps the order of the file, and sets requests without credentials apart', () => {
  const { clients, anonymous } = valid(
    `[z]\nallow = all\ntoken_sha256 = ${one}\n[anonymous]\nallow = named\n[a_-9]\nallow = mcp\njwt = sub: x\n`,
  );
  assert.deepEqual(
    clients.map(({ name }) => name),
    ['z', 'a_-9'],
  );
  assert.deepEqual(clients[0], {
    ...permanent,
    name: 'z',
    allow: permissions,
    tokenDigests: [one],
  });
  assert.deepEqual(anonymous, { ...permanent, name: 'anonymous', allow: ['named'] });
  assert.ok(Object.isFrozen(clients) && Object.isFrozen(clients[0]) && Object.isFrozen(anonymous));
});

test('a limit of 0 is no limit, as in a section', () => {
  const [client] = valid(
    `[a]\nallow = sql\ntoken_sha256 = ${one}\nmax_rows = 0\nmax_result_bytes = 0\n`,
  ).clients;
  assert.deepEqual([client?.maxRows, client?.maxResultBytes], [null, null]);
});

/** @param lines the text after the first line, which is `[c]` and has a token and a permission */
const body = (lines: string) => `[c]\nallow = sql\ntoken_sha256 = ${one}\n${lines}\n`;

const digestProblem =
  'must be the SHA-256 of a token, 64 hexadecimal digits: `dbhttpd --new-token` prints both';
const wanted = 'must be `claim: value`, as in `realm_access.roles: web-user`';
const dotted = `${wanted}: quotes are needed around a name with \`:\` or \`.\``;
const trailing =
  'has text after a value: commas separate conditions, and quotes are needed around values other than words';
const unusable = 'cannot be set in [anonymous], whose requests have no credentials';

const faulty: readonly (readonly [text: string, ...faults: readonly string[]])[] = [
  ['', '- -: describes no client: [name]'],
  ['; nothing\n', '- -: describes no client: [name]'],
  [
    `allow = sql\n${body('')}`,
    'allow 1: is before the first [section], so no section would use it',
  ],
  [body('').replace('[c]', '[c'), '- 1: begins a section with [ and does not close it with ]'],
  [
    `${body('')}[c] x\n`,
    '- 5: has text after the ] of a section, which must be on a line of its own',
    '[c] - 5: begins this section a second time',
  ],
  [`${body('')}[c]\nshare = 2\n`, '[c] - 5: begins this section a second time'],
  [body('nonsense'), '[c] - 4: is neither `key = value` nor a [section] nor a comment'],
  [body('share = 1\nshare = 2'), '[c] share 5: is already set in line 4'],
  [
    body('max_inflight = 2'),
    '[c] max_inflight 4: is not a key of a client: did you mean `max_in_flight`?',
  ],
  [body('colour = red'), '[c] colour 4: is not a key of a client'],
  [
    body('').replace('[c]', '[Web]'),
    '[Web] - 1: is not a name of a client: a-z, 0-9, - and _, at most 64',
  ],
  [
    body('').replace('[c]', '[]'),
    '[] - 1: is not a name of a client: a-z, 0-9, - and _, at most 64',
  ],
  [
    body('').replace('[c]', `[${'x'.repeat(65)}]`),
    `[${'x'.repeat(64)}] - 1: is not a name of a client: a-z, 0-9, - and _, at most 64`,
  ],
  [
    body('').replace('[c]', '[__proto__]'),
    '[__proto__] - 1: is not a name of a client: a-z, 0-9, - and _, at most 64',
  ],
  [
    body('').replace('[c]', '[default]'),
    '[default] - 1: is the client of the tokens of the first section: choose another name',
  ],
  [`[c]\ntoken_sha256 = ${one}\n`, '[c] allow 1: is required'],
  ['[c]\nallow = sql\n', '[c] - 1: needs `token_sha256` or `jwt`: no request could belong to it'],
  ['[c]\nallow = sql\ntoken_sha256 =\n', '[c] token_sha256 3: is empty'],
  [
    body('').replace('= sql', '= sql, obseve'),
    '[c] allow 2: has an unknown permission, `obseve`: did you mean `observe`?',
  ],
  [
    body('').replace('= sql', '= anything'),
    `[c] allow 2: has an unknown permission, \`anything\`: one of all, ${permissions.join(', ')}`,
  ],
  [body('').replace('= sql', '= all, sql'), '[c] allow 2: has `all` beside other permissions'],
  [body('').replace('= sql', '= sql, sql'), '[c] allow 2: names `sql` twice'],
  [body('').replace('= sql', '= sql,,kill'), '[c] allow 2: has an empty entry'],
  [
    body('').replace('= sql', '= drivers'),
    '[c] allow 2: has `drivers` without `sql`: drivers send SQL',
  ],
  [body('').replace(one, one.slice(1)), `[c] token_sha256 3: ${digestProblem}`],
  [body('').replace(one, `${one} ${two}`), `[c] token_sha256 3: ${digestProblem}`],
  [body('').replace(one, digest('')), '[c] token_sha256 3: has the SHA-256 of an empty text'],
  [
    body('').replace(one, `${one}, ${one.toUpperCase()}`),
    '[c] token_sha256 3: has the same digest twice',
  ],
  [
    `${body('')}[d]\nallow = sql\ntoken_sha256 = ${two}, ${one}\n`,
    '[d] token_sha256 7: has a token that [c] has, too',
  ],
  [
    body('').replace(one, digest('of the section')),
    '[c] token_sha256 3: has a token that the first section has, too',
  ],
  [
    body('sections = wrld'),
    '[c] sections 4: names a section that is not served, `wrld`: did you mean `world`?',
  ],
  [
    body('sections = other'),
    '[c] sections 4: names a section that is not served, `other`: world, shop',
  ],
  [body('sections = shop, shop'), '[c] sections 4: names `shop` twice'],
  [body('read_only = yes'), '[c] read_only 4: must be on or off'],
  [body('share = 0'), '[c] share 4: must be from 1 to 1000'],
  [body('share = 1.5'), '[c] share 4: must be a whole number'],
  [body('max_in_flight = -1'), '[c] max_in_flight 4: must be a whole number'],
  [body('queue = many'), '[c] queue 4: must be a whole number'],
  [body('max_rows = 1e3'), '[c] max_rows 4: must be a whole number'],
  [body('max_result_bytes = 1GiB'), '[c] max_result_bytes 4: must be a size such as 64KiB or 1MiB'],
  [
    body('statement_timeout = 5'),
    '[c] statement_timeout 4: must be a duration such as 500ms, 30s or 5m',
  ],
  [body('max_wait = 2h'), '[c] max_wait 4: must be from 1ms to 1h'],
  [body('expires = 1.1.2027'), '[c] expires 4: must be a day such as 2027-01-01'],
  [body('expires = 2027-02-30'), '[c] expires 4: must be a day such as 2027-01-01'],
  [body('may_claim = a, a'), '[c] may_claim 4: names `a` twice'],
  [body('share = 2;x'), '[c] share 4: contains `;`, `#` or `\\` and must be quoted'],
  [
    body('expires = "2027-01-01'),
    '[c] expires 4: has text after the closing quote, or no closing quote',
  ],
  [body('jwt ='), `[c] jwt 4: ${wanted}`],
  [body('jwt = ; roles: x'), `[c] jwt 4: ${wanted}`],
  [body('jwt = roles'), `[c] jwt 4: ${dotted}`],
  [body('jwt = https://example.com/roles: x'), `[c] jwt 4: ${trailing}`],
  [body('jwt = roles:'), `[c] jwt 4: ${wanted}`],
  [body('jwt = .roles: x'), `[c] jwt 4: ${wanted}`],
  [body('jwt = a..b: x'), `[c] jwt 4: ${wanted}`],
  [body('jwt = a: x b: y'), `[c] jwt 4: ${trailing}`],
  [body('jwt = a: x,'), `[c] jwt 4: ${wanted}`],
  [body('jwt = a: x;y'), `[c] jwt 4: ${trailing}`],
  [body("jwt = '': x"), `[c] jwt 4: ${wanted}`],
  [body("jwt = 'a: x"), `[c] jwt 4: ${wanted}`],
  [body('jwt = "\\q": x'), `[c] jwt 4: ${wanted}`],
  [body('jwt = a: x\njwt = b'), `[c] jwt 5: ${dotted}`],
  [
    `[anonymous]\nallow = named\ntoken_sha256 = ${one}\njwt = a: b\nmay_claim = x\nexpires = 2027-01-01\n`,
    ...['token_sha256 3', 'jwt 4', 'may_claim 5', 'expires 6'].map(
      (place) => `[anonymous] ${place}: ${unusable}`,
    ),
  ],
];

test('reports each fault, with its client, key and line', () => {
  for (const [text, ...faults] of faulty) {
    const found = faultsOf(text);
    assert.deepEqual(found, faults, text);
    for (const fault of found) assert.doesNotMatch(fault, /[0-9a-f]{32}/);
  }
});

test('reports all faults of all clients, in the order of their lines', () => {
  const text = `stray = 1\n[A]\nallow = sqll\nshare = x\n[b]\nqueue = -1\n[A]\n`;
  assert.deepEqual(
    faultsOf(text).map((fault) => fault.replace(/:.*/, '')),
    [
      'stray 1',
      '[A] - 2',
      '[A] - 2',
      '[A] allow 3',
      '[A] share 4',
      '[b] allow 5',
      '[b] - 5',
      '[b] queue 6',
      '[A] - 7',
    ],
  );
});

test('conditions on JSON Web Tokens need keys', () => {
  const text = '[c]\nallow = sql\njwt = sub: x\n';
  valid(text);
  assert.deepEqual(faultsOf(text, { hasKeys: false }), [
    '[c] jwt 3: needs `jwt_keys` in the first section',
  ]);
});

test('requests without credentials may do no more than `named` and `metrics` where others can send them', () => {
  const anonymous = (allow: string) => `[anonymous]\nallow = ${allow}\n`;
  const exposure = '`listen` is beyond loopback';
  valid(anonymous('all'));
  valid(anonymous('named, metrics'), { exposure });
  for (const allow of ['sql', 'all', 'metrics, observe']) {
    assert.deepEqual(faultsOf(anonymous(allow), { exposure }), [
      `[anonymous] allow 2: opens more than \`named\` and \`metrics\` to requests without credentials, and ${exposure}: allow less, or set \`insecure = on\``,
    ]);
  }
  valid(body(''), { exposure });
});

test('takes a token’s digest from a client that has none of the section’s tokens', () => {
  const other = body('').replace(one, three);
  assert.deepEqual(valid(other, { tokens: [] }).clients[0]?.tokenDigests, [three]);
});
