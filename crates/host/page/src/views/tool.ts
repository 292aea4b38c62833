// Tool calls: one line that says kind, target, state and time; below it what the call did.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import { hunksOf } from '../conversation/details'
import type { Tool } from '../conversation/state'
import type { SessionStore } from '../session_store'
import { highlight, languageOf } from '../text/code'
import { countChanges, diffTexts, hunkLines, type Line } from '../text/diff'
import { count, duration, plural, relativePath } from '../text/format'
import { visible, visibleText } from '../text/visible'
import { diffTable } from './diff'
import { foldedText, isOpen, toggle } from './fold'
import { icon, spinner, type IconName } from './icons'

interface Look { icon: IconName, name: string, target: string, detail: string, open: boolean }

const text = (value: unknown) => typeof value === 'string' ? value : ''

export function lookOf (tool: Tool, folder: string): Look {
  const { input, meta } = tool
  const path = relativePath(text(input.file_path) || text(input.notebook_path) || text(input.path), folder)
  const look = (icon: IconName, target: string, detail = '', open = false, name = tool.name): Look => ({ icon, name, target, detail, open })
  switch (tool.name) {
    case 'Bash': return look('terminal', text(input.command) || partialField(tool, 'command'), '', true)
    case 'BashOutput': case 'TaskOutput': return look('terminal', text(input.task_id) || text(input.bash_id))
    case 'Monitor': return look('terminal', text(input.description) || text(input.command), '', true)
    case 'Read': return look('file', path || partialField(tool, 'file_path'), lineCount(meta))
    case 'Edit': case 'MultiEdit': case 'Write': case 'NotebookEdit': return look('pencil', path || relativePath(partialField(tool, 'file_path'), folder), changeCount(tool), true)
    case 'Glob': return look('search', text(input.pattern), resultCount(tool, meta?.numFiles, 'file'))
    case 'Grep': return look('search', [text(input.pattern), path].filter(Boolean).join(' in '), resultCount(tool, meta?.numFiles ?? meta?.numLines, 'match', 'matches'))
    case 'WebFetch': return look('globe', text(input.url))
    case 'WebSearch': return look('globe', text(input.query))
    case 'Task': case 'Agent': return look('agent', text(input.description) || partialField(tool, 'description'), text(input.subagent_type), false)
    case 'TodoWrite': return look('list', todoSummary(input.todos))
    case 'TaskCreate': return look('list', text(input.subject))
    case 'TaskUpdate': return look('list', [`#${text(input.taskId).replace(/^#/, '')}`, text(input.status), text(input.subject)].filter(Boolean).join(' '))
    case 'AskUserQuestion': return look('question', text((input.questions as { question?: string }[] | undefined)?.[0]?.question), '', false)
    case 'ExitPlanMode': return look('list', 'Plan', '', false)
    case 'Skill': return look('file', text(input.skill) || text(input.name))
  }
  const server = /^mcp__(.+?)__(.+)$/.exec(tool.name)
  const first = Object.values(input).find(value => typeof value === 'string')
  return look(server ? 'plug' : 'terminal', server ? `${server[2]} ${text(first)}`.trim() : text(first) || shortJson(input), server?.[1] ?? '')
}

function partialField (tool: Tool, field: string): string {
  const found = new RegExp(`"${field}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(tool.partial)
  if (!found) return ''
  try {
    return JSON.parse(`"${found[1]!.replace(/\\$/, '')}"`) as string
  } catch {
    return found[1]!
  }
}

function shortJson (input: Record<string, unknown>): string {
  const json = JSON.stringify(input)
  return json === '{}' ? '' : json.slice(0, 120)
}

function lineCount (meta: Tool['meta']): string {
  const file = meta?.file as { numLines?: number, startLine?: number } | undefined
  if (!file?.numLines) return ''
  return file.startLine && file.startLine > 1 ? `lines ${file.startLine}–${file.startLine + file.numLines - 1}` : plural(file.numLines, 'line')
}

function resultCount (tool: Tool, found: unknown, word: string, many = `${word}s`): string {
  if (typeof found !== 'number' || tool.state !== 'done') return ''
  return found === 1 ? `1 ${word}` : `${count(found)} ${many}`
}

function todoSummary (todos: unknown): string {
  if (!Array.isArray(todos)) return ''
  const done = todos.filter((todo: { status?: string }) => todo.status === 'completed').length
  const current = (todos as { status?: string, activeForm?: string }[]).find(todo => todo.status === 'in_progress')
  return `${done} of ${todos.length} done${current?.activeForm ? ` · ${current.activeForm}` : ''}`
}

/** The text of a file after an editing call. */
export function editedText (before: string, input: Record<string, unknown>): string {
  const edits = Array.isArray(input.edits) ? input.edits as Record<string, unknown>[] : [input]
  if (typeof input.content === 'string') return input.content
  return edits.reduce((content: string, edit) => {
    const from = text(edit.old_string)
    if (!from) return content
    return edit.replace_all ? content.replaceAll(from, () => text(edit.new_string)) : content.replace(from, () => text(edit.new_string))
  }, before)
}

const diffs = new WeakMap<object, Line[]>()

/** The diff of an editing call: of the engine once it is done, before that from the input. */
export function linesOf (tool: Pick<Tool, 'input' | 'meta'>): Line[] {
  const hunks = hunksOf(tool.meta)
  const key = hunks.length ? hunks : tool.input
  const known = diffs.get(key)
  if (known) return known
  const lines = hunks.length ? hunkLines(hunks) : inputLines(tool.input, typeof tool.meta?.originalFile === 'string' ? tool.meta.originalFile : '')
  diffs.set(key, lines)
  return lines
}

function inputLines (input: Record<string, unknown>, original: string): Line[] {
  if (Array.isArray(input.edits)) {
    return (input.edits as { old_string?: string, new_string?: string }[]).flatMap(edit => diffTexts(text(edit.old_string), text(edit.new_string)))
  }
  if (typeof input.new_string === 'string') return diffTexts(text(input.old_string), input.new_string)
  return diffTexts(original, text(input.content) || text(input.new_source))
}

function changeCount (tool: Tool): string {
  if (tool.state === 'preparing') return ''
  const { added, removed } = countChanges(linesOf(tool))
  return [added ? `+${added}` : '', removed ? `−${removed}` : ''].filter(Boolean).join(' ')
}

const STATE_WORDS: Record<Tool['state'] | 'waiting', string> = {
  preparing: 'being written', running: 'running', done: 'done', failed: 'failed', denied: 'denied', stopped: 'stopped', waiting: 'waiting for you'
}

export function stateMark (state: Tool['state'] | 'waiting'): TemplateResult {
  const mark = { preparing: spinner, running: spinner, done: icon('check'), failed: icon('cross'), denied: icon('slash'), stopped: icon('stop'), waiting: icon('clock') }[state]
  return html`<span class="state ${state}">${mark}<span class="unseen">${STATE_WORDS[state]}</span></span>`
}

export interface ToolContext { app: App, session: SessionStore, folder: string, waiting: boolean, children: (id: string) => unknown, childCount: number, now: number }

export function toolCard (tool: Tool, context: ToolContext): TemplateResult {
  const { app, folder, waiting } = context
  const look = lookOf(tool, folder)
  const key = `tool:${tool.id}`
  const byDefault = look.open && !waiting
  const open = isOpen(key, byDefault)
  const failed = tool.state === 'failed' && tool.result !== ''
  const body = open ? toolBody(tool, context) : failed ? html`<div class="tool-body">${foldedText(app, `error:${tool.id}`, tool.result, 'Error')}</div>` : nothing
  return html`<article class="tool ${tool.state} ${open || failed ? 'open' : ''}" aria-label="Tool: ${tool.name}">
    <button type="button" class="tool-line" aria-expanded=${open ? 'true' : 'false'} @click=${() => toggle(app, key, byDefault)}>
      ${icon(look.icon)}<span class="tool-name">${visible(look.name.replace(/^mcp__.+?__/, ''))}</span>
      <span class="tool-target" title=${visibleText(look.target).slice(0, 400)}>${visible(look.target.split('\n')[0]!.slice(0, 300))}${look.target.includes('\n') ? ' …' : ''}</span>
      ${look.detail ? html`<span class="tool-detail">${changeSpans(look.detail)}</span>` : nothing}
      ${tool.progress ? html`<span class="tool-detail">${visible(tool.progress)}</span>` : nothing}
      <span class="tool-time">${timeOf(tool, waiting, context.now)}</span>${stateMark(waiting ? 'waiting' : tool.state)}
    </button>
    ${body}
  </article>`
}

function changeSpans (detail: string) {
  if (!/^[+−]\d/.test(detail)) return visible(detail)
  return detail.split(' ').map((part, index) => html`${index ? ' ' : ''}<span class=${part.startsWith('+') ? 'plus' : 'minus'}>${part}</span>`)
}

function timeOf (tool: Tool, waiting: boolean, now: number): string {
  if (waiting || !tool.startedAt) return ''
  if (tool.endedAt) {
    const ms = tool.endedAt - tool.startedAt
    return ms >= 100 ? duration(ms) : ''
  }
  const ms = now - tool.startedAt
  return tool.state === 'running' && ms >= 2000 ? duration(ms).replace(/\.\d s/, ' s') : ''
}

function toolBody (tool: Tool, context: ToolContext): TemplateResult {
  const { app, session } = context
  return html`<div class="tool-body">
    ${content(tool, context)}
    ${tool.pictures.map(picture => html`<img class="picture" src=${picture} alt="Picture from ${tool.name}">`)}
    ${tool.cutSeq ? html`<button type="button" class="fold" @click=${() => { void session.loadWhole(tool.cutSeq).then(() => app.changed(), error => app.fail(error)) }}>Load everything</button>` : nothing}
  </div>`
}

function content (tool: Tool, context: ToolContext): unknown {
  const { app } = context
  const key = `output:${tool.id}`
  switch (tool.name) {
    case 'Bash': case 'Monitor': {
      const output = tool.result || tool.output
      const command = text(tool.input.command)
      return html`${command.includes('\n') || command.length > 90 ? html`<pre class="command" tabindex="0" aria-label="Command">${highlight(command, 'bash')}</pre>` : nothing}
        ${tool.omittedBytes && !tool.result ? html`<p class="fold-note">${count(tool.omittedBytes)} earlier bytes are not shown</p>` : nothing}
        ${output && output !== '(no output)' ? foldedText(app, key, tool.result ? output : tailOf(output), 'Output') : tool.endedAt ? html`<p class="fold-note">no output</p>` : nothing}`
    }
    case 'Edit': case 'MultiEdit': case 'Write': case 'NotebookEdit': {
      const lines = linesOf(tool)
      return html`${lines.length ? diffTable(app, `diff:${tool.id}`, lines, 'Changes') : nothing}${tool.state === 'failed' ? foldedText(app, key, tool.result, 'Error') : nothing}`
    }
    case 'Task': case 'Agent': {
      const prompt = text(tool.input.prompt)
      return html`${prompt ? html`<p class="agent-prompt">${visible(prompt.length > 600 ? `${prompt.slice(0, 600)} …` : prompt)}</p>` : nothing}
        ${context.childCount ? html`<div class="children">${context.children(tool.id)}</div>` : nothing}
        ${tool.result ? foldedText(app, key, tool.result, 'Report') : nothing}`
    }
    case 'Read': {
      const file = tool.meta?.file as { content?: string } | undefined
      const path = text(tool.input.file_path)
      if (file?.content && tool.state === 'done' && file.content.length < 20_000) return html`<pre class="output" tabindex="0" aria-label="File">${highlight(file.content, languageOf(path))}</pre>`
      return tool.result ? foldedText(app, key, tool.result, 'File') : nothing
    }
  }
  return html`${Object.keys(tool.input).length ? inputTable(tool.input) : nothing}${tool.result ? foldedText(app, key, tool.result, 'Result') : nothing}`
}

function tailOf (output: string): string {
  const lines = output.split('\n')
  return lines.length > 16 ? lines.slice(-16).join('\n') : output
}

/** Characters of a field that are drawn. */
const MAX_FIELD = 4000

function shorten (value: string): string {
  return value.length > MAX_FIELD ? `${value.slice(0, MAX_FIELD)} … (${count(value.length - MAX_FIELD)} more characters)` : value
}

/** The fields of an input. */
export function inputTable (input: Record<string, unknown>): TemplateResult {
  return html`<dl class="input">${Object.entries(input).map(([name, value]) => html`<div><dt>${visible(name)}</dt><dd>${visible(shorten(typeof value === 'string' ? value : JSON.stringify(value, null, 1)))}</dd></div>`)}</dl>`
}
