// docs/reference/api-report.txt compared with the declarations of the build.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import ts from 'typescript';
import { apiReport, CONSUMER_OPTIONS, entryPoints } from '../../tools/generate/api-report.js';
import { ROOT, textOf } from '../sources.js';
import { built } from './built.js';

const REPORT = 'docs/reference/api-report.txt';

/** What features add to the public object. */
const ADDED = ['sessions', 'hooks'];

/** The members that the interface `Turnpike` of its own file lacks. */
function missingMembers(file: ts.SourceFile, checker: ts.TypeChecker): readonly string[] {
  const declaration = file.statements.find((each) => ts.isInterfaceDeclaration(each) && each.name.text === 'Turnpike');
  const members = declaration === undefined ? [] : checker.getTypeAtLocation(declaration).getProperties();
  return ADDED.filter((name) => !members.some((member) => member.name === name));
}

describe('the public API', () => {
  let present = '';

  beforeAll(async () => {
    await built();
    present = apiReport();
  }, 300_000);

  test('has a section for every entry point of package.json', () => {
    const sections = [...present.matchAll(/^# (\S+) \(\d+\)$/gm)].map(([, name]) => name);
    expect(sections).toEqual([...entryPoints().keys()]);
  });

  test('declares every exported name', () => {
    // A name whose declaration TypeScript cannot find has no kind.
    expect(present.split('\n').filter((line) => /^(?:deprecated )? ?\w+$/.test(line))).toEqual([]);
  });

  test('compiles for consumers who check the declarations of libraries too', () => {
    const program = ts.createProgram([...entryPoints().values()], { ...CONSUMER_OPTIONS, skipLibCheck: false });
    const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(join(ROOT, 'dist')));
    const found = own.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]);
    expect(own.length).toBeGreaterThan(200);
    expect(found.map(({ file, messageText }) => [file?.fileName, messageText])).toEqual([]);
  }, 120_000);

  test('every entry that names the public object has what features add to it', () => {
    const found = [...entryPoints()].flatMap(([entry, path]) => {
      const program = ts.createProgram([path], CONSUMER_OPTIONS);
      const file = program.getSourceFile(join(ROOT, 'dist/src/host/turnpike.d.ts'));
      return file === undefined ? [] : [[entry, ...missingMembers(file, program.getTypeChecker())]];
    });
    expect(found.length).toBeGreaterThan(1);
    expect(found.filter(([, ...missing]) => missing.length > 0)).toEqual([]);
  }, 120_000);

  // If this fails after an intended change: `npm run generate -- api` writes the report. CHANGELOG names the change.
  test('equals the report', () => {
    expect(present.split('\n')).toEqual(textOf(REPORT).split('\n'));
  });
});
