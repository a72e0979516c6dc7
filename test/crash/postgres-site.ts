// A ledger in a database of its own, with its home directory, that can be copied as a whole.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute } from '../stores/postgres/postgres-harness.js';

/** A home directory, `home` in its folder, and the URL of its database. */
export interface Site {
  readonly folder: string;
  readonly url: string;
}

/** Copies the database, and the folder, whose home names both. No process may be connected. */
export async function copySite(server: string, from: Site, to: string): Promise<Site> {
  const [source, target] = [databaseOf(from.url), `copy_${(copies += 1)}`];
  await execute(server, `CREATE DATABASE ${target} TEMPLATE ${source}`);
  const url = from.url.replace(new RegExp(`${source}$`), target);
  cpSync(from.folder, to, { recursive: true });
  const file = join(to, 'home/store.json');
  const text = readFileSync(file, 'utf8').replaceAll(`${from.folder}/`, `${to}/`).replace(from.url, url);
  writeFileSync(file, text);
  return { folder: to, url };
}

/** Removes the database of a copy. */
export const dropSite = (server: string, { url }: Site): Promise<unknown> =>
  execute(server, `DROP DATABASE ${databaseOf(url)} WITH (FORCE)`);

export const createDatabase = async (server: string, name: string): Promise<string> => {
  await execute(server, `CREATE DATABASE ${name}`);
  return server.replace(/[^/]*$/, name);
};

let copies = 0;
const databaseOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1);
