// Commands as call rules read them (0061). The oracle is a real shell: what has a reading, it must read alike.

import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { shellCommands } from '../../../../src/features/hooks/calls/shell-words.js';
import { RecordingShell } from '../../../fixtures/hooks/recording-shell.js';

describe('0061: a command', () => {
  test.each<[string, string[][]]>([
    ['git status', [['git', 'status']]],
    ['  git   status\t--short ', [['git', 'status', '--short']]],
    [
      'git add . && git commit -m "two words"',
      [
        ['git', 'add', '.'],
        ['git', 'commit', '-m', 'two words'],
      ],
    ],
    ["echo 'a $b' | sort; ls", [['echo', 'a $b'], ['sort'], ['ls']]],
    [
      'npm test 2>&1 | tail -5',
      [
        ['npm', 'test'],
        ['tail', '-5'],
      ],
    ],
    ['ls >/dev/null 2>&1', [['ls']]],
    ['a\n\nb\n', [['a'], ['b']]],
    ['a\nb &', [['a'], ['b']]],
    ['git show HEAD~1', [['git', 'show', 'HEAD~1']]],
    ['ls ~/x ""', [['ls', '~/x', '']]],
    [`a'b'"c"`, [['abc']]],
  ])('%j is read', (text, commands) => {
    expect(shellCommands(text)).toEqual(commands);
  });

  test.each([
    '',
    ' \n',
    'echo $HOME',
    'echo `id`',
    'echo $(id)',
    'echo "$(id)"',
    'A=1 git fetch',
    'A+=1 git fetch',
    'echo hi > x.txt',
    'echo hi >> x.txt',
    'cat < x',
    'cat <<E\nE',
    'ls *.ts',
    'ls .en?',
    'ls .{env,git}',
    'ls [.]env',
    '(id)',
    "'unclosed",
    'a &&',
    'a |',
    '&& a',
    'a ;; b',
    'a |& b',
    '; a',
    '! a',
    'ls ~root',
    'x=~/a',
    'a\u0000b',
    'a\rb',
    'a\u001bb',
    '>/dev/null',
    'ls >/dev/nullx',
    'ls 2>&12',
    "$'a'",
    `a${' '.repeat(9_000)}`,
    'a;'.repeat(100),
    '\ud800',
  ])('%j has no reading', (text) => {
    expect(shellCommands(text)).toBeNull();
  });

  test.each<[string, string[][]]>([
    ['a\\ b c\\;', [['a b', 'c;']]],
    ['a \\\n b', [['a', 'b']]],
    ['"a\\b"', [['a\\b']]],
    ['grep "a\\|b" "x\\$" "\\"y" "z$" "!"', [['grep', 'a\\|b', 'x$', '"y', 'z$', '!']]],
    ['a # b; c\nd', [['a'], ['d']]],
    ['a#b', [['a#b']]],
  ])('%j is read as bash reads it', (text, commands) => {
    expect(shellCommands(text)).toEqual(commands);
  });

  test.each([
    'ls >/dev/null\u00a0',
    `ls >${' '.repeat(54)}/dev/nullx`,
    'ls \u00a0x',
    'ls\u2003x',
    'ls \u200bx',
    "ls '\u202ex'",
    'ls =sh',
    'ls a=~root/x',
    'ls a:~root/x',
    'time ls',
    'if ls',
    'coproc ls',
    'foreach ls',
    'ls "$x"',
    'ls "$(x)"',
    'ls "$$"',
    'ls "`x`"',
    'ls "${x}"',
    'ls \\\u00e9',
  ])('%j has no reading that is certain', (text) => {
    expect(shellCommands(text)).toBeNull();
  });
});

describe('0061: a real shell reads each command alike', () => {
  let shells: RecordingShell;
  beforeAll(() => {
    shells = new RecordingShell(['p', 'q'], { files: ['.env', 'a', 'ab', 'b'], home: '~' });
  });

  const piece = fc.constantFrom(
    ...['p', 'q', 'p ', 'q ', ' ', ' ', '\n', ';', '&&', '||', '|', '&', "'", '"', "'x y'", '"z w"', 'a', '.env', '*'],
    ...['?', '$', '`', '\\', '~', '~/', '#', '=', 'A=1', '{a,b}', '[a]', '>', '<', '2>&1', '>/dev/null', '!', '^', '%'],
    ...['(', ')', '\t', '\u00a0', '\\\n', '"$"', '\\\\', '-x', 'é'],
  );
  const command = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => `p ${pieces.join('')}`);

  test.each(['/bin/sh', '/bin/bash'])('%s', (shell) => {
    let read = 0;
    fc.assert(
      fc.property(command, (text) => {
        const commands = shellCommands(text);
        // In a pipe or behind `&` and `||`, order and execution depend on more than the words.
        if (commands === null) return;
        read += 1;
        const allowed = commands.map((words) => JSON.stringify(words));
        // Whatever the shell runs is a command of the reading.
        for (const words of shells.run(shell, text).ran) expect(allowed).toContain(JSON.stringify(words));
      }),
      { numRuns: 300, seed: 7 },
    );
    expect(read).toBeGreaterThan(20);
  });
});
