// The words that decide what a statement may do to its session, and the functions that are known to do nothing to it.

/** Minimal number of slots for each word: most words of a statement are names, and should hit an empty slot. */
const minSpace = 8;

/** An open-addressed hash table of ASCII words: it finds them in a text, in any case, without a slice. An entry's `text` is in upper case. */
export class WordTable<Entry extends { readonly text: string }> {
  readonly #entries: readonly Entry[];
  /** Numbers of entries, from 1; 0: the slot is empty. */
  readonly #slots: Uint16Array;
  readonly #longest: number;

  constructor(entries: readonly Entry[]) {
    this.#entries = entries;
    this.#slots = new Uint16Array(2 ** Math.ceil(Math.log2(entries.length * minSpace)));
    this.#longest = Math.max(...entries.map(({ text }) => text.length));
    entries.forEach(({ text }, index) => {
      let slot = this.#slotOf(text, 0, text.length);
      while (this.#slots[slot] !== 0) slot = this.#after(slot);
      this.#slots[slot] = index + 1;
    });
  }

  /** The entry of the word from `start` to `end`; null: there is none. */
  find(text: string, start: number, end: number): Entry | null {
    if (end - start > this.#longest) return null;
    for (let slot = this.#slotOf(text, start, end); ; slot = this.#after(slot)) {
      const at = this.#slots[slot] as number;
      if (at === 0) return null;
      const entry = this.#entries[at - 1] as Entry;
      if (isSameWord(entry.text, text, start, end)) return entry;
    }
  }

  #after(slot: number): number {
    return (slot + 1) & (this.#slots.length - 1);
  }

  #slotOf(text: string, start: number, end: number): number {
    let hash = 0;
    for (let at = start; at < end; at += 1) {
      hash = Math.imul(hash ^ upperCase(text.charCodeAt(at)), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash & (this.#slots.length - 1);
  }
}

function isSameWord(word: string, text: string, start: number, end: number): boolean {
  if (word.length !== end - start) return false;
  for (let at = 0; at < word.length; at += 1) {
    if (word.charCodeAt(at) !== upperCase(text.charCodeAt(start + at))) return false;
  }
  return true;
}

/** ASCII letters only: ſ and ı would turn into S and I, which make other words. */
function upperCase(code: number): number {
  return code >= 0x61 && code <= 0x7a ? code - 0x20 : code;
}

/** A set of the words in a text, which spaces separate. */
export function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/));
}

/** Meanings of a word, as bits: a word may have several. */
export const wordFlags = {
  /** May stand directly before a parenthesis without being a call: keywords that no server takes for the name of a stored function. */
  beforeParenthesis: 1,
  /** A built-in function, on MySQL 8.0.21 and MariaDB 10.5 and all later ones alike, that leaves nothing in the session. */
  harmlessFunction: 2,
  /** A built-in that reads what an earlier statement left. */
  readingFunction: 4,
  /** A built-in that changes the session (locks, sequences), but no data. */
  sessionFunction: 8,
  /** As a plain word, changes later answers of the session. */
  sessionWord: 16,
  /** As a plain word or a quoted name, may read what an earlier statement left. */
  readingWord: 32,
  /** Facts compare it by its text. */
  classified: 64,
  /** A built-in whose answer does not depend on the tables alone: on the clock, chance, the session or a file. Or it takes time. */
  nondeterministicFunction: 128,
  /** The same, also without parentheses behind it. */
  nondeterministicWord: 256,
  /** Shows where tables are named. Reserved on both servers, or compared only where a table must follow. */
  tableWord: 512,
  /** Part of every statement that may create, replace or drop a table, a view or a trigger, or change who may see it. */
  changingWord: 1024,
  /** Harmless built-ins of MariaDB, and of MySQL before 9: from then on a stored function may have the name. */
  formerFunction: 2048,
  /** Harmless built-ins of MariaDB (10.6 and later). */
  mariadbFunction: 4096,
  /** Harmless built-ins of MySQL (8.0.21 and later), and the OF of MEMBER OF (…). */
  mysqlFunction: 8192,
  /** Harmless built-ins of MariaDB from 10.11 on, from 11.8 on, and of MySQL from 9 on. */
  mariadb1011Function: 32768,
  mariadb118Function: 65536,
  mysql9Function: 131072,
  /** Built in only if the parenthesis touches it. Otherwise, without IGNORE_SPACE, it is a call of a stored function. */
  touchingFunction: 16384,
} as const;

const lists: readonly (readonly [number, string])[] = [
  [
    wordFlags.beforeParenthesis,
    `ALL AND ANY AS BETWEEN BIGINT BINARY BIT BLOB BY CASE CHAR CHARACTER DATETIME DEC DECIMAL DISTINCT DISTINCTROW
     DIV DOUBLE ELSE ENUM EXCEPT EXISTS FIXED FLOAT FROM GROUP HAVING IN INDEX INSERT INT INTEGER INTERSECT INTERVAL
     INTO JOIN KEY LIKE LIMIT MEDIUMINT MOD NCHAR NOT NUMERIC ON OR PARTITION REAL REGEXP REPLACE RLIKE ROW SELECT SET
     SMALLINT SOME STRAIGHT_JOIN TEXT THEN TINYINT UNION USING VALUE VALUES VARBINARY VARCHAR WHEN WHERE XOR`,
  ],
  [
    wordFlags.harmlessFunction,
    `ABS ACOS ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ASCII ASIN ATAN ATAN2 AVG BENCHMARK BIN BIT_AND BIT_COUNT
     BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHAR CHARACTER_LENGTH CHARSET CHAR_LENGTH COALESCE COERCIBILITY
     COLLATION COMPRESS CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS COT COUNT CRC32 CUME_DIST CURDATE
     CURRENT_DATE CURRENT_ROLE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD
     DATE_FORMAT DATE_SUB DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR DEFAULT DEGREES DENSE_RANK ELT EXP EXPORT_SET
     EXTRACT EXTRACTVALUE FIELD FIND_IN_SET FIRST_VALUE FLOOR FORMAT FROM_BASE64 FROM_DAYS FROM_UNIXTIME GET_FORMAT
     GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSTR ISNULL IS_FREE_LOCK
     IS_IPV4 IS_IPV4_COMPAT IS_IPV4_MAPPED IS_IPV6 IS_USED_LOCK JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND
     JSON_ARRAY_INSERT JSON_CONTAINS JSON_CONTAINS_PATH JSON_DEPTH JSON_EXTRACT JSON_INSERT JSON_KEYS JSON_LENGTH
     JSON_MERGE_PATCH JSON_MERGE_PRESERVE JSON_OBJECT JSON_OBJECTAGG JSON_QUOTE JSON_REMOVE JSON_REPLACE JSON_SEARCH
     JSON_SET JSON_TYPE JSON_UNQUOTE JSON_VALID JSON_VALUE LAG LAST_DAY LAST_VALUE LCASE LEAD LEAST LEFT LENGTH LN
     LOAD_FILE LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAKE_SET MATCH MAX
     MBRCONTAINS MBRDISJOINT MBRINTERSECTS MBROVERLAPS MBRTOUCHES MBRWITHIN MICROSECOND MID MIN MINUTE MOD MONTH
     MONTHNAME NAME_CONST NOW NTH_VALUE NTILE NULLIF OCT OCTET_LENGTH ORD PERCENT_RANK PERIOD_ADD PERIOD_DIFF PI
     POSITION POW POWER QUARTER QUOTE RADIANS RAND RANK REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR REPEAT REPLACE
     REVERSE RIGHT ROUND ROW_NUMBER RPAD RTRIM SCHEMA SECOND SEC_TO_TIME SESSION_USER SHA2 SIGN SIN SLEEP SOUNDEX
     SPACE SQRT STD STDDEV STDDEV_POP STDDEV_SAMP STRCMP STR_TO_DATE ST_AREA ST_ASBINARY ST_ASGEOJSON ST_ASTEXT
     ST_ASWKB ST_ASWKT ST_BUFFER ST_CENTROID ST_CONTAINS ST_CONVEXHULL ST_CROSSES ST_DIFFERENCE ST_DIMENSION
     ST_DISJOINT ST_DISTANCE ST_ENDPOINT ST_ENVELOPE ST_EQUALS ST_EXTERIORRING ST_GEOMETRYN ST_GEOMETRYTYPE
     ST_GEOMFROMGEOJSON ST_GEOMFROMTEXT ST_GEOMFROMWKB ST_INTERIORRINGN ST_INTERSECTION ST_INTERSECTS ST_ISCLOSED
     ST_ISEMPTY ST_ISSIMPLE ST_LENGTH ST_LINEFROMTEXT ST_LINEFROMWKB ST_NUMGEOMETRIES ST_NUMINTERIORRINGS ST_NUMPOINTS
     ST_OVERLAPS ST_POINTFROMTEXT ST_POINTFROMWKB ST_POINTN ST_POLYFROMTEXT ST_POLYFROMWKB ST_SRID ST_STARTPOINT
     ST_SYMDIFFERENCE ST_TOUCHES ST_UNION ST_WITHIN ST_X ST_Y SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM
     SYSDATE SYSTEM_USER TAN TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64
     TO_DAYS TO_SECONDS TRIM TRUNCATE UCASE UNCOMPRESS UNCOMPRESSED_LENGTH UNHEX UNIX_TIMESTAMP UPDATEXML UPPER USER
     UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT VALUES VARIANCE VAR_POP VAR_SAMP VERSION WEEK WEEKDAY WEEKOFYEAR
     WEIGHT_STRING YEAR YEARWEEK`,
  ],
  [wordFlags.formerFunction, 'MD5 SHA SHA1'],
  [
    wordFlags.mariadbFunction,
    `ADD_MONTHS CHR JSON_COMPACT JSON_DETAILED JSON_EXISTS JSON_LOOSE JSON_QUERY LENGTHB MEDIAN NVL NVL2 PERCENTILE_CONT
     PERCENTILE_DISC ST_DISTANCE_SPHERE TO_CHAR`,
  ],
  [
    wordFlags.mysqlFunction,
    `ANY_VALUE BIN_TO_UUID FORMAT_BYTES GEOMETRYCOLLECTION GROUPING IS_UUID JSON_OVERLAPS JSON_PRETTY
     JSON_SCHEMA_VALID JSON_SCHEMA_VALIDATION_REPORT JSON_STORAGE_FREE JSON_STORAGE_SIZE LINESTRING MULTILINESTRING
     MULTIPOINT MULTIPOLYGON OF POINT POLYGON RANDOM_BYTES REGEXP_LIKE STATEMENT_DIGEST ST_DISTANCE_SPHERE ST_GEOHASH
     ST_ISVALID ST_LATITUDE ST_LONGITUDE ST_MAKEENVELOPE ST_POINTFROMGEOHASH ST_SIMPLIFY ST_SWAPXY ST_TRANSFORM
     ST_VALIDATE UUID_TO_BIN`,
  ],
  [
    wordFlags.mariadb1011Function,
    'CRC32C JSON_EQUALS JSON_NORMALIZE JSON_OVERLAPS NATURAL_SORT_KEY RANDOM_BYTES SFORMAT SYS_GUID',
  ],
  [
    wordFlags.mariadb118Function,
    `FORMAT_BYTES JSON_ARRAY_INTERSECT JSON_OBJECT_TO_ARRAY JSON_SCHEMA_VALID KDF UUID_V4 UUID_V7 VEC_DISTANCE
     VEC_DISTANCE_COSINE VEC_DISTANCE_EUCLIDEAN VEC_FROMTEXT VEC_TOTEXT`,
  ],
  [wordFlags.mysql9Function, 'FROM_VECTOR STRING_TO_VECTOR TO_VECTOR VECTOR_DIM VECTOR_TO_STRING'],
  [wordFlags.readingFunction, 'LAST_INSERT_ID ROW_COUNT FOUND_ROWS'],
  [
    wordFlags.sessionFunction,
    'GET_LOCK RELEASE_LOCK RELEASE_ALL_LOCKS MASTER_POS_WAIT MASTER_GTID_WAIT SOURCE_POS_WAIT WAIT_FOR_EXECUTED_GTID_SET',
  ],
  [wordFlags.sessionWord, 'SQL_CALC_FOUND_ROWS NEXTVAL SETVAL LASTVAL PREVIOUS OUTFILE DUMPFILE'],
  [
    wordFlags.readingWord,
    `INFORMATION_SCHEMA PERFORMANCE_SCHEMA SYS SESSION_STATUS SESSION_VARIABLES PROFILING LASTVAL NEXTVAL SETVAL
     PREVIOUS DIAGNOSTICS`,
  ],
  [
    wordFlags.classified,
    `SELECT INSERT UPDATE DELETE REPLACE WITH SHOW EXPLAIN DESCRIBE DESC ANALYZE VALUES TABLE INTO FOR SHARE LOCK IN
     NEXT VALUE AS RECURSIVE LOW_PRIORITY DELAYED HIGH_PRIORITY IGNORE WARNINGS ERRORS STATUS VARIABLES PROFILE
     PROFILES COUNT SCHEMA DATABASE`,
  ],
  [
    wordFlags.nondeterministicFunction,
    `BENCHMARK CONNECTION_ID CURDATE CURTIME DEFAULT IS_FREE_LOCK IS_USED_LOCK LOAD_FILE NOW RAND RANDOM_BYTES
     SESSION_USER SLEEP SYSTEM_USER SYS_GUID UNIX_TIMESTAMP USER UUID UUID_SHORT UUID_V4 UUID_V7`,
  ],
  [
    wordFlags.nondeterministicWord,
    `CURRENT_DATE CURRENT_ROLE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP SYSDATE UTC_DATE
     UTC_TIME UTC_TIMESTAMP`,
  ],
  [
    wordFlags.tableWord,
    `AS DELAYED DELETE DUAL FOR FROM GROUP HAVING HIGH_PRIORITY IGNORE INSERT INTO JOIN KEY LIMIT LOW_PRIORITY ORDER
     RECURSIVE REPLACE SELECT SET SHOW STRAIGHT_JOIN TABLE UNION UPDATE USING VALUES WHERE WITH`,
  ],
  [
    wordFlags.touchingFunction,
    `ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CUME_DIST CURDATE CURTIME DATE_ADD DATE_SUB DENSE_RANK EXTRACT
     FIRST_VALUE GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG LAG LEAD MAX MEDIAN MID MIN NOW NTH_VALUE NTILE PERCENT_RANK
     PERCENTILE_CONT PERCENTILE_DISC POSITION RANK SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR
     SUBSTRING SUM SYSDATE SYSTEM_USER TRIM VARIANCE VAR_POP VAR_SAMP`,
  ],
  [wordFlags.changingWord, 'ALTER CALL CREATE DROP EXECUTE GRANT IMPORT INSTALL RENAME REVOKE'],
];

/** A known word in upper case, with its meanings. */
export type KnownWord = { readonly text: string; readonly flags: number };

const flagsByWord = new Map<string, number>();
for (const [flag, text] of lists) {
  for (const word of words(text)) {
    flagsByWord.set(word, (flagsByWord.get(word) ?? 0) | flag);
  }
}
const knownWords: readonly KnownWord[] = [...flagsByWord].map(([text, flags]) => ({ text, flags }));
const table = new WordTable(knownWords);

/** The known word from `start` to `end`, in any case; null: it is not a known word. */
export function findWord(sql: string, start: number, end: number): KnownWord | null {
  return table.find(sql, start, end);
}

/** Upper case for ASCII words. Others remain: ſ and ı would turn into S and I, which make other words. */
export function toUpperAscii(word: string): string {
  for (let at = 0; at < word.length; at += 1) {
    if (word.charCodeAt(at) > 0x7f) return word;
  }
  return word.toUpperCase();
}

/** The flags of functions that are built in on a server: a call of one reaches no stored function. */
export type BuiltIns = number;

/** Functions that are built in everywhere; used while the server is not known. */
export const builtInEverywhere: BuiltIns = wordFlags.harmlessFunction;

/** The first major version of MySQL without MD5, SHA and SHA1 (seen on 9.7; a component has them from then on). */
const mysqlWithoutDigests = 9;

/** The versions that brought further functions. */
const additions: Readonly<Record<'mariadb' | 'mysql', readonly (readonly [number, number])[]>> = {
  mariadb: [
    [10.06, wordFlags.mariadbFunction],
    [10.11, wordFlags.mariadb1011Function],
    [11.08, wordFlags.mariadb118Function],
  ],
  mysql: [
    [8, wordFlags.mysqlFunction],
    [mysqlWithoutDigests, wordFlags.mysql9Function],
  ],
};

/** Functions that are built in on a server. @param version the handshake's; MariaDB's may have its prefix for old clients */
export function builtInsOf(flavour: 'mariadb' | 'mysql', version: string): BuiltIns {
  const [, major = '0', minor = '0'] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(version) ?? [];
  // 10.6 is 10.06, and before 10.11.
  const own = Number(major) + Number(minor) / 100;
  const hasDigests = flavour === 'mariadb' || (own > 0 && own < mysqlWithoutDigests);
  return additions[flavour].reduce(
    (all, [since, functions]) => (own >= since ? all | functions : all),
    builtInEverywhere | (hasDigests ? wordFlags.formerFunction : 0),
  );
}

/** Every word before a parenthesis that is not an unknown call on such a server, for tests against one. */
export function unsuspectedNames(builtIns: BuiltIns): readonly string[] {
  const wanted = wordFlags.beforeParenthesis | wordFlags.readingFunction | builtIns;
  return knownWords.filter(({ flags }) => flags & wanted).map(({ text }) => text);
}
