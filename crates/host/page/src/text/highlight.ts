// A small highlighter: comments, strings, numbers, keywords, types and calls, by one regular expression for each family of
// languages. It never fails: what it does not know stays plain.

export type HighlightToken = [kind: '' | 'comment' | 'string' | 'number' | 'keyword' | 'type' | 'call' | 'key' | 'added' | 'removed' | 'meta', text: string]

const C_WORDS = 'if else for while do switch case default break continue return struct enum union typedef static const void int char float double long short unsigned signed sizeof goto extern volatile inline'
const JS_WORDS = 'const let var function return if else for while do switch case default break continue new delete typeof instanceof in of class extends super this import export from as async await yield try catch finally throw null undefined true false void static get set'

const WORDS: Record<string, string> = {
  rust: 'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while',
  js: JS_WORDS,
  ts: `${JS_WORDS} type interface enum implements readonly private public protected declare namespace abstract keyof satisfies is`,
  python: 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self',
  go: 'break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false',
  c: C_WORDS,
  cpp: `${C_WORDS} class public private protected namespace using template typename new delete this virtual override auto constexpr nullptr true false try catch throw operator friend`,
  java: 'abstract boolean break byte case catch char class continue default do double else enum extends final finally float for if implements import instanceof int interface long new null package private protected public record return short static super switch this throw throws true false try var void while',
  kotlin: 'as break class continue do else false for fun if in interface is null object package return super this throw true try typealias val var when while import private public override data sealed suspend',
  swift: 'as break case class continue default defer do else enum extension false for func guard if import in init is let nil private public return self static struct super switch throw throws true try var where while protocol async await',
  csharp: 'abstract as async await base bool break case catch class const continue default do else enum event false finally for foreach if in int interface internal is namespace new null object out override private protected public readonly ref return sealed static string struct switch this throw true try using var virtual void while yield record',
  ruby: 'alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true unless until when while yield require',
  php: 'abstract as break case catch class const continue default do echo else elseif extends final finally fn for foreach function if implements interface match namespace new null private protected public return static switch this throw trait true false try use var while yield',
  bash: 'if then else elif fi for while until do done case esac in function return export local readonly set unset shift exit break continue',
  lua: 'and break do else elseif end false for function goto if in local nil not or repeat return then true until while',
  sql: 'select from where insert into values update set delete create table index view drop alter add join left right inner outer on as and or not null is in exists between like order by group having limit offset union all distinct primary key references default unique begin commit rollback with returning case when then else end conflict do nothing'
}

const ALIASES: Record<string, string> = {
  rs: 'rust', javascript: 'js', jsx: 'js', mjs: 'js', typescript: 'ts', tsx: 'ts', py: 'python', python3: 'python', golang: 'go', h: 'c', 'c++': 'cpp', cc: 'cpp', kt: 'kotlin',
  cs: 'csharp', 'c#': 'csharp', rb: 'ruby', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', jsonc: 'json', jsonl: 'json', json5: 'json', yml: 'yaml', xml: 'html', svg: 'html',
  vue: 'html', scss: 'css', less: 'css', ini: 'toml', conf: 'toml', patch: 'diff'
}

const SLASH_COMMENTS = '\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)'
const HASH_COMMENTS = '#[^\\n]*'
const STRINGS = '"(?:\\\\[\\s\\S]|[^"\\\\\\n])*"?'
const QUOTES = "'(?:\\\\[\\s\\S]|[^'\\\\\\n])*'?"
const TICKS = '`(?:\\\\[\\s\\S]|[^`\\\\])*`?'
const NUMBER = '\\b(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:[eE][+-]?\\d+)?)[a-zA-Z\\d]*'
const WORD = '[A-Za-z_$][\\w$]*'

interface Grammar { comment: string, string: string, words: Set<string>, ignoreCase: boolean }

function grammar (language: string): Grammar | undefined {
  const words = WORDS[language]
  if (words === undefined) return undefined
  const set = new Set(words.split(' '))
  const hash = ['python', 'ruby', 'bash'].includes(language)
  const dashes = ['sql', 'lua'].includes(language)
  const comment = hash ? (language === 'bash' ? '(?<=^|\\s)#[^\\n]*' : HASH_COMMENTS) : dashes ? '--[^\\n]*' : SLASH_COMMENTS
  let string = `${STRINGS}|${QUOTES}`
  if (language === 'js' || language === 'ts' || language === 'go') string = `${STRINGS}|${QUOTES}|${TICKS}`
  if (language === 'python') string = `"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|${STRINGS}|${QUOTES}`
  // A quote that begins a lifetime is no string.
  if (language === 'rust') string = `${STRINGS}|'(?:\\\\[^'\\n]+|[^'\\\\\\n])'`
  if (language === 'bash') string = `"(?:\\\\[\\s\\S]|[^"\\\\])*"?|'[^']*'?`
  return { comment, string, words: set, ignoreCase: language === 'sql' }
}

const cache = new Map<string, { pattern: RegExp, grammar: Grammar }>()

/** The tokens of a code, or nothing if the language is not known. */
export function tokenize (code: string, name: string): HighlightToken[] | undefined {
  const language = ALIASES[name] ?? name
  if (language === 'json') return byPattern(code, /("(?:\\.|[^"\\\n])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*/g, match => match[1] ? (match[2] ? 'key' : 'string') : /^[tfn]/.test(match[0]) ? 'keyword' : 'number')
  if (language === 'toml') return byPattern(code, /(#[^\n]*)|(^\s*\[[^\n]*\])|(^\s*[\w.-]+)(?=\s*=)|("(?:\\.|[^"\\\n])*"|'[^'\n]*')|\b(?:true|false)\b|\b\d[\d_.:TZ-]*/gm, match => match[1] ? 'comment' : match[2] ? 'meta' : match[3] ? 'key' : match[4] ? 'string' : /^[tf]/.test(match[0]) ? 'keyword' : 'number')
  if (language === 'yaml') return byPattern(code, /((?:^|\s)#[^\n]*)|(^\s*(?:- )?[\w."'/-]+)(?=\s*:(?:\s|$))|("(?:\\.|[^"\\\n])*"|'[^'\n]*')|\b(?:true|false|null)\b|\b\d[\d_.]*\b/gm, match => match[1] ? 'comment' : match[2] ? 'key' : match[3] ? 'string' : /^[tfn]/.test(match[0]) ? 'keyword' : 'number')
  if (language === 'css') return byPattern(code, /(\/\*[\s\S]*?(?:\*\/|$))|("[^"\n]*"|'[^'\n]*')|([\w-]+)(?=\s*:[^{]*[;}\n])|(@[\w-]+)|(#[\da-fA-F]{3,8}\b|\b\d[\d.]*(?:%|[a-z]+)?)/g, match => match[1] ? 'comment' : match[2] ? 'string' : match[3] ? 'key' : match[4] ? 'keyword' : 'number')
  if (language === 'html') return byPattern(code, /(<!--[\s\S]*?(?:-->|$))|(<\/?[A-Za-z][\w:-]*|\/?>)|([\w:@-]+)(?==)|("[^"]*"|'[^']*')/g, match => match[1] ? 'comment' : match[2] ? 'keyword' : match[3] ? 'key' : 'string')
  if (language === 'diff') return byPattern(code, /^(\+[^\n]*)|^(-[^\n]*)|^(@@[^\n]*)/gm, match => match[1] ? 'added' : match[2] ? 'removed' : 'meta')
  return byGrammar(code, language)
}

function byGrammar (code: string, language: string): HighlightToken[] | undefined {
  let known = cache.get(language)
  if (!known) {
    const found = grammar(language)
    if (!found) return undefined
    known = { grammar: found, pattern: new RegExp(`(${found.comment})|(${found.string})|(${NUMBER})|(${WORD})(\\s*\\()?`, 'gm') }
    cache.set(language, known)
  }
  const { words, ignoreCase } = known.grammar
  return byPattern(code, known.pattern, match => {
    if (match[1]) return 'comment'
    if (match[2]) return 'string'
    if (match[3]) return 'number'
    const word = match[4] ?? ''
    if (words.has(ignoreCase ? word.toLowerCase() : word)) return 'keyword'
    if (/^[A-Z][a-z]/.test(word)) return 'type'
    return match[5] ? 'call' : ''
  })
}

function byPattern (code: string, pattern: RegExp, kind: (match: RegExpExecArray) => HighlightToken[0]): HighlightToken[] {
  const tokens: HighlightToken[] = []
  const push = (kind: HighlightToken[0], text: string) => {
    const last = tokens.at(-1)
    if (last && last[0] === kind) last[1] += text
    else if (text) tokens.push([kind, text])
  }
  let at = 0
  pattern.lastIndex = 0
  for (let match = pattern.exec(code); match; match = pattern.exec(code)) {
    push('', code.slice(at, match.index))
    const found = kind(match)
    // What follows a key or a name only decides; it is not part of it.
    const behind = match[5] ?? (found === 'key' && match[2] && match[1] ? match[2] : '')
    const own = behind && match[0].endsWith(behind) ? match[0].slice(0, match[0].length - behind.length) : match[0]
    push(found, own)
    if (own !== match[0]) push('', match[0].slice(own.length))
    at = match.index + match[0].length
    if (!match[0]) pattern.lastIndex++
  }
  push('', code.slice(at))
  return tokens
}
