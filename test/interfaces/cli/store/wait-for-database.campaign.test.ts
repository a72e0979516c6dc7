// A service whose database is away at its start, and the database named again to a verification.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startPostgres } from '../../../fixtures/postgres.js';
import { tempFolder, turnpike } from '../fake-io.js';

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('a database that is away at the start', () => {
  const url = server?.url ?? '';
  let folder: string;
  const home = (): string => join(folder, 'home');
  beforeAll(async () => {
    folder = tempFolder('wait');
    const init = ['init', '--store', url, '--home', home(), '--unsafe-shared'];
    expect(await turnpike(folder, init)).toMatchObject({ code: 0 });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(['worker', 'serve'])(
    '%s joins once the database is back, and waits no longer than it was told',
    async (command) => {
      const argv = [command, '--home', home(), ...(command === 'serve' ? ['--port', '0'] : [])];
      const stop = new AbortController();
      let running: ReturnType<typeof turnpike> | undefined;
      let isReady = (): void => undefined;
      const ready = new Promise<void>((resolve) => (isReady = resolve));
      await server?.restart(async () => {
        const none = await turnpike(folder, [...argv, '--wait', '0']);
        expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining('LEDGER_UNAVAILABLE') });
        const short = await turnpike(folder, [...argv, '--wait', '1']);
        expect(short).toMatchObject({ code: 3, stderr: expect.stringContaining('LEDGER_UNAVAILABLE') });
        expect(short.log).toContain('the database is away: waiting for it');
        const onStderr = (text: string): void => {
          if (/has joined|http:/.test(text)) isReady();
        };
        running = turnpike(folder, [...argv, '--wait', '60'], { stop: stop.signal, onStderr });
      });
      await ready;
      stop.abort();
      expect(await running).toMatchObject({ code: 0 });
    },
    180_000,
  );

  test('a database that answers and refuses ends it at once', async () => {
    const other = [
      'worker',
      '--home',
      home(),
      '--store',
      url.replace('/postgres?', '/').replace(/\/postgres$/, '/none'),
    ];
    const refused = await turnpike(folder, [...other, '--wait', '300']);
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('LEDGER_UNAVAILABLE') });
  }, 60_000);

  test('ledger verify takes the database that --store names', async () => {
    expect(await turnpike(folder, ['ledger', 'verify', '--home', home(), '--store', url])).toMatchObject({ code: 0 });
    const elsewhere = await turnpike(folder, ['ledger', 'verify', '--home', home(), '--store', `${url}_not_there`]);
    expect(elsewhere.code).toBe(3);
  }, 60_000);
});
