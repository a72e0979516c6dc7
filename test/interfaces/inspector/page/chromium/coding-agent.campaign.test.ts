// A session of a coding agent in a real browser: its calls, their reported outcomes, and the gaps (0064).

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mintToken, tokenBook } from '../../../../../src/stores/keys/token-file.js';
import { nanoidIds } from '../../../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../../../src/system/system-clock.js';
import { winstonLog } from '../../../../../src/system/winston-log.js';
import type { JsonObject } from '../../../../../src/core/contract/json.js';
import type { HttpServer } from '../../../../../src/interfaces/http/http-server.js';
import { serveTurnpike } from '../../../../../src/interfaces/http/serve.js';
import { Bench } from '../../../../fixtures/bench.js';
import { codingEdit } from '../../../../fixtures/coding-policy.js';
import { inChromium, presentPage, Tab, withBrowser } from './browser.js';

inChromium('the page of a session of a coding agent', () => {
  withBrowser();
  let bench: Bench;
  let server: HttpServer;
  let tab: Tab | null = null;
  beforeEach(async () => {
    bench = await Bench.open({ edit: codingEdit, hooks: true });
    mkdirSync(join(bench.folder, 'project'));
  });
  afterEach(async () => {
    await tab?.close();
    await server.close();
    await bench.close();
  });

  async function serve(): Promise<Tab> {
    const grant = { actor: 'operator', role: 'ATTORNEY_ADMIN', rights: ['observe'] as const };
    const { token, record } = mintToken(grant, systemClock(), nanoidIds());
    server = await serveTurnpike({
      turnpike: bench.turnpike,
      host: '127.0.0.1',
      port: 0,
      storedTokens: false,
      tokens: tokenBook(() => [record], systemClock()),
      page: await presentPage(),
      log: winstonLog('silent'),
    });
    return Tab.open(`${server.url}/#token=${token}`, {});
  }

  let calls = 0;
  const send = async (hook_event_name: string, more: JsonObject = {}): Promise<void> => {
    const project = join(bench.folder, 'project');
    const event = { session_id: 'session-1', cwd: project, hook_event_name, ...more };
    const caller = { actor: 'coder', person: 'dana', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project };
    await bench.turnpike.hooks?.answer('claude-code', event, caller, { version: '2.1.330', findings: [] });
  };
  const bash = (command: string): JsonObject => ({
    tool_name: 'Bash',
    tool_input: { command },
    tool_use_id: `toolu_${(calls += 1)}`,
  });
  const done = { tool_response: { stdout: '', stderr: '', interrupted: false } };

  test('shows its calls, its gaps as they are found, and what is only reported', async () => {
    const reported = bash('git status');
    await send('PreToolUse', reported);
    await send('PostToolUse', { ...reported, ...done });
    await send('PreToolUse', bash('rm -rf /'));
    await send('PreToolUse', bash('git status'));
    tab = await serve();
    const line = '.center [role="note"]';
    await tab.see(line, 'claude-code 2.1.330 session session-1: 3 calls seen');
    await tab.see(line, '3 gated (2 allowed, 1 denied, 0 for approval) · 1 outcomes reported, 1 open · not compared: ');
    await tab.page.locator('[role="treeitem"] .turn').last().click();
    await tab.see('[role="treeitem"] .by-caller', 'by client');
    // Not the call that was denied: no one has executed it.
    expect(await tab.page.locator('[role="treeitem"] .by-caller').count()).toBe(2);
    await tab.page.keyboard.press('4');
    await tab.see('.bar.by-caller');
    await tab.view('coding-agent-light');
    await send('PostToolUse', { ...bash('curl example.org'), ...done });
    await tab.see(line, '4 calls seen · 3 gated');
    await tab.see(line, 'gaps: 1 not gated · not compared: ');
    await send('SessionEnd');
    await tab.see(line, 'gaps: 1 not gated, 1 allowed and refused or not reported');
  }, 120_000);
});
