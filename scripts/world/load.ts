// Fills the world database: tables first, then their rows in an order that satisfies the foreign keys.
import mysql from 'mysql2/promise';
import { likelyLanguage, listCurrencies, listLanguages, listNames } from './cldr.ts';
import { createWorld } from './schema.ts';
import { type Row, readCountries, readPlaces, readTransitions, readZones } from './tzdata.ts';

const rowsPerInsert = 2000;

/** Creates the database again and fills it, which takes seconds. Calls `report` with each table when it is full. */
export async function loadWorld(
  server: mysql.ConnectionOptions,
  report: (table: string, rows: number) => void,
): Promise<void> {
  const connection = await mysql.createConnection({ ...server, multipleStatements: true });
  try {
    await connection.query(createWorld);
    await connection.query('set unique_checks = 0; start transaction');
    const insert = async (table: string, columns: string, rows: readonly Row[]) => {
      for (let start = 0; start < rows.length; start += rowsPerInsert) {
        const some = rows.slice(start, start + rowsPerInsert);
        await connection.query(`insert into ${table} (${columns}) values ?`, [some]);
      }
      report(table, rows.length);
    };
    await insertAll(insert);
    await connection.query('commit');
  } finally {
    connection.destroy();
  }
}

type Insert = (table: string, columns: string, rows: readonly Row[]) => Promise<void>;

async function insertAll(insert: Insert): Promise<void> {
  const languages = listLanguages();
  const languageCodes = languages.map(([code]) => String(code));
  const known = new Set(languageCodes);
  await insert('language', 'code, name', languages);

  const countries = readCountries();
  const speaking = countries.map(({ code, name }): Row => {
    const language = likelyLanguage(code);
    return [code, name, language !== null && known.has(language) ? language : null];
  });
  await insert('country', 'code, name, language', speaking);

  const currencies = listCurrencies();
  await insert('currency', 'code, name, symbol, digits', currencies);

  const zones = readZones();
  await insert('timezone', 'name, country', zones);
  const placeColumns = 'name, country, timezone, latitude, longitude, remark';
  await insert('place', placeColumns, readPlaces());
  const transitionColumns = 'timezone, at, offset_seconds, is_dst, abbreviation';
  await insert('timezone_transition', transitionColumns, readTransitions(zones));

  const columns = 'code, language, name';
  const countryCodes = countries.map(({ code }) => code);
  await insert('country_name', columns, listNames('region', countryCodes));
  await insert('language_name', columns, listNames('language', languageCodes));
  const currencyCodes = currencies.map(([code]) => String(code));
  await insert('currency_name', columns, listNames('currency', currencyCodes));
}
