// The result of tests as JUnit XML, which CI systems read.

/** One test; `failures` is empty for a passed one. */
export interface JunitTest {
  readonly file: string;
  readonly line: number;
  readonly name: string;
  readonly failures: readonly string[];
}

export function junitText(suite: string, tests: readonly JunitTest[]): string {
  const failed = tests.filter(({ failures }) => failures.length > 0).length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites><testsuite name="${escapeXml(suite)}" tests="${tests.length}" failures="${failed}">`,
    ...tests.map(testText),
    '</testsuite></testsuites>',
    '',
  ].join('\n');
}

function testText({ file, line, name, failures }: JunitTest): string {
  const head = `<testcase classname="${escapeXml(file)}" name="${escapeXml(name)}" file="${escapeXml(file)}" line="${line}"`;
  if (failures.length === 0) return `${head}/>`;
  return `${head}><failure message="${escapeXml(failures.join('; '))}"/></testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** XML 1.0 has no control characters, not even escaped ones. */
const escapeXml = (text: string): string =>
  text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
