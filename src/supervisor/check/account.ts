// An account as SQL names it.

/** 'user'@'host', for GRANT. @param account as CURRENT_USER() says it: user@host, without quotes */
export function quoteAccount(account: string): string {
  const at = account.lastIndexOf('@');
  return `${quote(account.slice(0, at))}@${quote(account.slice(at + 1))}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
