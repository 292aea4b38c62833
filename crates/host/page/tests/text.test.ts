import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diffTexts, hunkLines, matchLines, type Line } from '../src/text/diff'
import { duration, hue, relativePath } from '../src/text/format'
import { tokenize } from '../src/text/highlight'
import { GrowingMarkdown, isPlain, markdown, safeAddress } from '../src/text/markdown'
import { splitHidden, visibleText } from '../src/text/visible'
import { qrCode } from '../src/text/qr'
import { Random } from './random'

test('control and bidi characters are named', () => {
  assert.equal(visibleText('a\u001b[31mb\u202ec\u0000d'), 'a<ESC>[31mb<U+202E>c<NUL>d')
  assert.equal(visibleText('tab\tline\nend'), 'tab\tline\nend')
  assert.equal(visibleText('invisible\u{e0041}tag\u200b'), 'invisible<U+E0041>tag<U+200B>')
})

test('joined emoji stay whole', () => {
  const family = '👩\u200d👩\u200d👧'
  assert.deepEqual(splitHidden(family), [family])
  assert.equal(visibleText('a\u200db'), 'a<U+200D>b')
})

test('only http, https and mail addresses are links', () => {
  const rows: [string, string | null][] = [
    ['https://example.com/a', 'https://example.com/a'], ['http://example.com', 'http://example.com/'], ['mailto:ann@example.com', 'mailto:ann@example.com'],
    ['javascript:alert(1)', null], ['JaVaScRiPt:alert(1)', null], ['data:text/html,x', null], ['vbscript:x', null], ['/v1/sessions', null], ['//example.com', null], ['file:///etc/passwd', null], ['java\nscript:alert(1)', null]
  ]
  for (const [href, expected] of rows) assert.equal(safeAddress(href), expected, href)
})

/** The static strings and the values of a template and of all templates in it. */
function flatten (value: unknown): { markup: string, values: unknown[] } {
  if (Array.isArray(value)) {
    const parts = value.map(flatten)
    return { markup: parts.map(part => part.markup).join(''), values: parts.flatMap(part => part.values) }
  }
  if (value !== null && typeof value === 'object' && 'strings' in value) {
    const template = value as unknown as { strings: string[], values: unknown[] }
    const inner = flatten(template.values)
    return { markup: template.strings.join('') + inner.markup, values: inner.values }
  }
  return { markup: '', values: [value] }
}

test('html in markdown is text, never markup', () => {
  const source = 'Hello <script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) ![p](https://evil.example/p.png)\n\n<svg onload=alert(1)>'
  const { markup, values } = flatten(markdown(source))
  assert.doesNotMatch(markup, /script|onerror|onload|<img|<svg/)
  assert.match(values.filter(value => typeof value === 'string').join(''), /<script>alert\(1\)<\/script>/)
  assert.ok(!markup.includes('<a '))
})

test('very long lines are not given to the lexer', () => {
  assert.equal(isPlain('x'.repeat(1 << 20)), true)
  assert.equal(isPlain('word\n'.repeat(10_000)), false)
})

test('markdown that grows equals markdown at once', () => {
  const source = '# Title\n\nSome **bold** text\nover lines.\n\n```rust\nfn a() {\n\n}\n```\n\n- one\n- two\n\n  more\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nlast `code`\n\ttab'
  for (let seed = 1; seed < 60; seed++) {
    const random = new Random(seed)
    const growing = new GrowingMarkdown()
    let length = 0
    while (length < source.length) {
      length = Math.min(source.length, length + 1 + random.below(12))
      const raw = growing.tokens(source.slice(0, length)).map(token => token.raw).join('')
      assert.equal(raw.replace(/\s+/g, ' ').trim(), source.slice(0, length).replace(/\s+/g, ' ').trim())
    }
    const whole = new GrowingMarkdown().tokens(source)
    assert.deepEqual(growing.tokens(source).filter(token => token.type !== 'space').map(token => token.type), whole.filter(token => token.type !== 'space').map(token => token.type))
  }
})

const render = (lines: Line[]) => lines.map(line => line.kind === 'skip' ? `@${line.count}` : `${line.kind === 'added' ? '+' : line.kind === 'removed' ? '-' : ' '}${line.text}`)

test('a diff applied to the old text gives the new one', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new Random(seed)
    const text = () => Array.from({ length: random.below(14) }, () => random.pick(['a', 'b', 'c', 'd'])).join('\n')
    const [before, after] = [text(), text()]
    const a = before.split('\n')
    const b = after.split('\n')
    const pairs = matchLines(a, b)
    let last: [number, number] = [-1, -1]
    for (const [x, y] of pairs) {
      assert.equal(a[x], b[y])
      assert.ok(x > last[0] && y > last[1], `pairs ascend, seed ${seed}`)
      last = [x, y]
    }
    assert.equal(pairs.length, longest(a, b), `as many lines are kept as possible, seed ${seed}`)
  }
})

function longest (a: string[], b: string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  for (let x = 1; x <= a.length; x++) for (let y = 1; y <= b.length; y++) table[x]![y] = a[x - 1] === b[y - 1] ? table[x - 1]![y - 1]! + 1 : Math.max(table[x - 1]![y]!, table[x]![y - 1]!)
  return table[a.length]![b.length]!
}

test('far equal lines are left out of a diff', () => {
  const before = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`)
  const after = before.map((line, index) => index === 14 ? 'changed 15' : line)
  const lines = diffTexts(before.join('\n'), after.join('\n'))
  assert.deepEqual(render(lines), ['@11', ' line 12', ' line 13', ' line 14', '-line 15', '+changed 15', ' line 16', ' line 17', ' line 18', '@12'])
})

test('changed words of a line are marked', () => {
  const [removed, added] = diffTexts('let total = 1 + tax', 'let total = 2 + tax')
  assert.ok(removed?.kind === 'removed' && added?.kind === 'added')
  assert.deepEqual(removed.marks.map(([begin, end]) => removed.text.slice(begin, end)), ['1'])
  assert.deepEqual(added.marks.map(([begin, end]) => added.text.slice(begin, end)), ['2'])
})

test('hunks keep the line numbers of the file', () => {
  const lines = hunkLines([{ oldStart: 41, newStart: 41, lines: [' a', '-b', '+c', ' d'] }])
  assert.deepEqual(lines.map(line => line.kind === 'skip' ? line.count : [line.old, line.new]), [40, [41, 41], [42, 0], [0, 42], [43, 43]])
})

test('two large texts without anything in common end soon', () => {
  const lines = (word: string) => Array.from({ length: 6000 }, (_, index) => `${word} ${index}`).join('\n')
  assert.equal(diffTexts(lines('old'), lines('new')).length, 12_000)
})

test('highlighting keeps every character', () => {
  const pieces = ['fn main() {', '"str', "'a'", '// note', '/* x', '*/', '\n', ' ', '12.5e3', 'let', '#!', '\\', '`t${x}`', '<a href="x">', 'key: 1', '[table]', '+added', '"""doc', '漢字', '😀']
  const languages = ['rust', 'js', 'ts', 'python', 'go', 'c', 'bash', 'json', 'toml', 'yaml', 'css', 'html', 'sql', 'diff', 'ruby', 'lua']
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed)
    const code = Array.from({ length: random.below(30) }, () => random.pick(pieces)).join(random.pick(['', ' ', '\n']))
    for (const language of languages) assert.equal((tokenize(code, language) ?? []).map(([, text]) => text).join(''), code, `${language}, seed ${seed}`)
  }
  assert.equal(tokenize('x', 'no such language'), undefined)
})

test('keywords, strings and comments are found', () => {
  assert.deepEqual(tokenize('let a = "x"; // y', 'rust'), [['keyword', 'let'], ['', ' a = '], ['string', '"x"'], ['', '; '], ['comment', '// y']])
})

test('a QR code grows with its text and has its fixed patterns', () => {
  for (const [length, size] of [[10, 21], [17, 21], [18, 25], [93, 37], [134, 41], [135, 45], [230, 53]] as const) {
    const code = qrCode('x'.repeat(length))
    assert.equal(code?.length, size)
    const finder = [0b1111111, 0b1000001, 0b1011101, 0b1011101, 0b1011101, 0b1000001, 0b1111111]
    for (const [left, top] of [[0, 0], [size - 7, 0], [0, size - 7]] as const) {
      assert.deepEqual(finder.map((_, y) => parseInt(code.slice(top + y, top + y + 1).map(row => row.slice(left, left + 7).map(dark => dark ? '1' : '0').join('')).join(''), 2)), finder)
    }
  }
  assert.equal(qrCode('x'.repeat(231)), undefined)
})

test('times and paths are short', () => {
  assert.deepEqual([40, 1234, 12_345, 65_000, 3_700_000].map(duration), ['40 ms', '1.2 s', '12 s', '1 min 5 s', '1 h 1 min'])
  assert.equal(relativePath('/w/p/src/a.rs', '/w/p'), 'src/a.rs')
  assert.equal(relativePath('/w/px/a.rs', '/w/p'), '/w/px/a.rs')
  assert.equal(hue('/w/p'), hue('/w/p'))
})
