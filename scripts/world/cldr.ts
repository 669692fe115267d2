// Rows from Node's CLDR: languages, currencies, and the names of both and of countries in forty languages.
import type { Row } from './tzdata.ts';

const namingLanguages = [
  ...['am', 'ar', 'bg', 'bn', 'cs', 'da', 'de', 'el', 'en', 'es', 'fa', 'fi', 'fr', 'gu', 'he'],
  ...['hi', 'hu', 'hy', 'id', 'is', 'it', 'ja', 'ka', 'km', 'ko', 'lt', 'my', 'ne', 'nl', 'pl'],
  ...['pt', 'ru', 'si', 'sv', 'sw', 'ta', 'th', 'tr', 'uk', 'ur', 'vi', 'yo', 'zh', 'zu'],
];
const letters = [...'abcdefghijklmnopqrstuvwxyz'];

/** code, name: every two- or three-letter language that has a name. */
export function listLanguages(): Row[] {
  const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' });
  const pairs = letters.flatMap((first) => letters.map((second) => first + second));
  return pairs
    .flatMap((pair) => [pair, ...letters.map((third) => pair + third)])
    .flatMap((code) => {
      // Intl gives the modern code for an old one. An old code is not a row.
      const name = new Intl.Locale(code).language === code ? names.of(code) : undefined;
      return name === undefined ? [] : [[code, name]];
    });
}

/** code, name, symbol, digits. */
export function listCurrencies(): Row[] {
  const names = new Intl.DisplayNames(['en'], { type: 'currency' });
  return Intl.supportedValuesOf('currency').map((currency) => {
    const format = new Intl.NumberFormat('en', {
      style: 'currency',
      currency,
      currencyDisplay: 'narrowSymbol',
    });
    const symbol = format.formatToParts(0).find((part) => part.type === 'currency')?.value;
    const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
    return [currency, names.of(currency) ?? currency, symbol ?? currency, digits];
  });
}

/** The language that is most likely spoken in a country; null if CLDR has none. */
export function likelyLanguage(country: string): string | null {
  const { language } = new Intl.Locale(`und-${country}`).maximize();
  return language === 'und' ? null : language;
}

/** code, language, name: the name of each code in each language. */
export function listNames(
  type: 'region' | 'language' | 'currency',
  codes: readonly string[],
): Row[] {
  return namingLanguages.flatMap((language) => {
    const names = new Intl.DisplayNames([language], { type, fallback: 'none' });
    return codes.flatMap((code) => {
      const name = names.of(code);
      return name === undefined ? [] : [[code, language, name]];
    });
  });
}
