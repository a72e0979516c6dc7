import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bindingProblem, bindingVersion, connectSqlite } from '../../../src/stores/sqlite/sqlite-binding.js';
import { ROOT } from '../../root.js';

const rangeOf = (): string => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return manifest.dependencies['better-sqlite3'] ?? '';
};

describe('the SQLite binding', () => {
  test('package.json lets npm choose line 12 or line 13 by the version of Node', () => {
    expect(rangeOf().split(' || ')).toEqual([expect.stringMatching(/^\^12\./), expect.stringMatching(/^\^13\./)]);
  });

  test('line 13 is refused where it would crash the process, and accepted where Node can load it', () => {
    for (const node of ['20.19.0', '20.20.2', '21.7.3']) {
      expect(bindingProblem(node, '13.2.0')).toContain(`better-sqlite3 13.2.0 crashes Node ${node}`);
      expect(bindingProblem(node, '12.11.1')).toBeNull();
    }
    for (const node of ['22.0.0', '24.20.0', '26.1.0']) expect(bindingProblem(node, '13.2.0')).toBeNull();
  });

  test('line 12 has a problem exactly on the versions of Node that it aborts', () => {
    for (const node of ['24.19.0', '24.20.0', '24.21.3'])
      expect(bindingProblem(node, '12.11.1')).toContain('npm update');
    for (const node of ['22.23.5', '24.18.1', '24.22.0', '26.4.0']) expect(bindingProblem(node, '12.11.1')).toBeNull();
  });

  test('the installed binding fits this version of Node, and opens a database', () => {
    expect(bindingProblem(process.versions.node, bindingVersion())).toBeNull();
    const db = connectSqlite(':memory:');
    expect(db.prepare('SELECT 1 + 1').pluck().get()).toBe(2);
    db.close();
  });
});
