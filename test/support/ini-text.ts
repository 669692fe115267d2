// Writes a section of an INI file.

/** Keys and values of a section, as the INI file has them. */
export type Settings = Readonly<Record<string, string | number | boolean>>;

/** The text of an INI file with one section; whatever is not plain is quoted. */
export function formatSection(section: string, settings: Settings): string {
  const lines = Object.entries(settings).map(([key, value]) => {
    const text = String(value);
    return `${key} = ${/^[\w./:[\]*,+-]*$/.test(text) ? text : JSON.stringify(text)}`;
  });
  return `[${section}]\n${lines.join('\n')}\n`;
}
