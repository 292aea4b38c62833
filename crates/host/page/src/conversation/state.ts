// What the page knows of one session: a value that `reduce` computes from events and live frames alone.

import type { Block, CanUseTool, ElicitationRequest, Mode, Person, RequestKind, RequestState, Scope, SessionState, TokenUsage, Upload } from '../contract'

export type Item =
  | { kind: 'prompt', key: string, uuid: string, text: string, pictures: string[], uploads: string[], by: string | null, at: number, dropped: boolean }
  | { kind: 'text', key: string, uuid: string, text: string, streaming: boolean, at: number, dropped: boolean }
  | { kind: 'thinking', key: string, text: string, streaming: boolean, dropped: boolean }
  | { kind: 'tool', key: string, id: string, dropped: boolean }
  | { kind: 'card', key: string, id: string, dropped: boolean }
  | { kind: 'notice', key: string, level: 'info' | 'warning' | 'error', text: string, session?: string, dropped: boolean }
  | { kind: 'turn_end', key: string, durationMs: number, costUsd: number, turns: number, dropped: boolean }

export type ToolState = 'preparing' | 'running' | 'done' | 'failed' | 'denied' | 'stopped'

export interface Tool {
  id: string
  name: string
  input: Record<string, unknown>
  /** JSON of the input as far as it was streamed. */
  partial: string
  state: ToolState
  result: string
  pictures: string[]
  /** The structured result (`tool_use_result`). */
  meta: Record<string, unknown> | null
  /** Output of the running command. */
  output: string
  omittedBytes: number
  progress: string
  startedAt: number
  endedAt: number
  parent: string | null
  /** The event whose frame came with cut strings. */
  cutSeq: number
  seq: number
}

export interface Card {
  id: string
  kind: RequestKind
  request: CanUseTool & ElicitationRequest
  openedAt: number
  state: RequestState
  closedAt: number
  outcome: Outcome | null
}

export interface Outcome {
  decision: 'allow' | 'deny'
  scope: Scope
  rule: string | null
  message: string | null
  inputChanged: boolean
  interrupt: boolean
  mode: Mode | null
  answers: Record<string, string | string[]> | null
  input: Record<string, unknown> | null
  by: Person | null
}

export interface Queued { uuid: string, text: string, by: string | null, at: number, priority: string, pictures: string[], uploads: Upload[], contextOnly: boolean }

export interface AgentTask {
  id: string
  description: string
  type: string
  agent: string | null
  toolUseId: string | null
  parent: string | null
  status: 'running' | 'completed' | 'failed' | 'stopped'
  background: boolean
  lastTool: string | null
  summary: string | null
  tokens: number
  toolUses: number
  durationMs: number
  startedAt: number
}

export interface Step { id: string, subject: string, status: 'pending' | 'in_progress' | 'completed', active: string | null }

export interface LiveBlock { kind: 'text' | 'thinking' | 'tool', key: string, text: string, toolId: string, name: string, done: boolean }

export interface LiveMessage { id: string, parent: string | null, blocks: LiveBlock[] }

export interface Conversation {
  /** Numbers of the first and the last event in this state; 0 if there is none. */
  first: number
  last: number
  /** Time of the first event. */
  firstAt: number
  /** Set when a number was missing; the page then reads again from `last`. */
  gap: boolean
  state: SessionState | null
  mode: Mode | null
  model: string | null
  /** A mode that the engine told of live, such as plan mode that the model entered; void with the next stored one. */
  liveMode: Mode | null
  items: Item[]
  /** Items of subagents by the id of the call that started them. */
  children: Map<string, Item[]>
  tools: Map<string, Tool>
  cards: Map<string, Card>
  queue: Queued[]
  live: Map<string, LiveMessage>
  /** Durable blocks of a message so far, by message id. */
  blocks: Map<string, number>
  tasks: Map<string, AgentTask>
  steps: Step[]
  files: Map<string, { added: number, removed: number }>
  commands: string[]
  status: string | null
  turnStartedAt: number
  interrupted: boolean
  costUsd: number
  usage: TokenUsage | null
  contextWindow: number
  /** Prompts that a rewind took out, by the uuid that undoes it. */
  rewound: { undo: string, to: string }[]
}

export function emptyConversation (): Conversation {
  return {
    first: 0,
    last: 0,
    firstAt: 0,
    gap: false,
    state: null,
    mode: null,
    model: null,
    liveMode: null,
    items: [],
    children: new Map(),
    tools: new Map(),
    cards: new Map(),
    queue: [],
    live: new Map(),
    blocks: new Map(),
    tasks: new Map(),
    steps: [],
    files: new Map(),
    commands: [],
    status: null,
    turnStartedAt: 0,
    interrupted: false,
    costUsd: 0,
    usage: null,
    contextWindow: 0,
    rewound: []
  }
}

/** A copy whose collections can be changed without changing the original. Their elements are replaced, never changed. */
export function copyConversation (state: Conversation): Conversation {
  return {
    ...state,
    items: [...state.items],
    children: new Map(state.children),
    tools: new Map(state.tools),
    cards: new Map(state.cards),
    queue: [...state.queue],
    live: new Map(state.live),
    blocks: new Map(state.blocks),
    tasks: new Map(state.tasks),
    steps: [...state.steps],
    files: new Map(state.files),
    rewound: [...state.rewound]
  }
}

export function contentText (content: string | Block[] | undefined): string {
  if (content === undefined) return ''
  if (typeof content === 'string') return content
  return content.filter(block => block.type === 'text').map(block => block.text ?? '').join('\n')
}

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** The pictures of a content as `data:` addresses; other types, such as SVG, are left out. */
export function contentPictures (content: string | Block[] | undefined): string[] {
  if (!Array.isArray(content)) return []
  return content.flatMap(({ type, source }) => {
    if (type !== 'image' || !source?.data || !PICTURE_TYPES.includes(source.media_type ?? '')) return []
    return [`data:${source.media_type};base64,${source.data}`]
  })
}
