// Writes records one after the other until it is killed, and says what was answered: `NUMBER STATUS`.
// Arguments: the module of databases, a URL, which run of them this is.

import { writeSync } from 'node:fs';

const [module, url, run] = process.argv.slice(2);
const { sqlDatabase } = await import(module);
const { NOTES } = JSON.parse(process.env.TARGETS);

const database = sqlDatabase({ url });
for (let n = 0; ; n += 1) {
  const { status } = await database.write({
    target: NOTES,
    mode: n % 2 === 0 ? 'append' : 'upsert',
    record: { id: `${run}-${n}`, text: 'x'.repeat(n % 7 === 0 ? 20_000 : 10) },
    case_id: 'case-0001',
    idempotency_key: `${run}-${n}`,
    request_hash: '0'.repeat(64),
  });
  writeSync(1, `${n} ${status}\n`);
}
