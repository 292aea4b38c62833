// Live frames: what is under way and not numbered. A durable block takes the place of its live one.

import type { Block, Frame, Mode } from '../contract'
import { updateTool } from './items'
import type { Conversation, LiveBlock, LiveMessage } from './state'

/** Characters of a command's live output that are kept. */
const MAX_OUTPUT = 64_000

const MAIN = ''

export function applyLive (state: Conversation, frame: Frame) {
  switch (frame.type) {
    case 'stream_event': return applyStream(state, frame)
    case 'tool_output': return applyOutput(state, frame)
    case 'tool_progress': return applyProgress(state, frame)
    case 'system': return applyStatus(state, frame)
  }
}

function applyStatus (state: Conversation, frame: Frame) {
  if (frame.subtype === 'status') state.status = typeof frame.status === 'string' ? frame.status : null
  if (frame.subtype === 'status' && frame.permissionMode) state.liveMode = frame.permissionMode as Mode
  if (frame.subtype === 'api_retry') state.status = `retry ${Number(frame.attempt ?? 1)}`
  if (frame.subtype !== 'task_progress') return
  const task = state.tasks.get(String(frame.task_id))
  if (!task) return
  const usage = (frame.usage ?? {}) as { total_tokens?: number, tool_uses?: number, duration_ms?: number }
  state.tasks.set(task.id, {
    ...task,
    lastTool: (frame.last_tool_name as string | null) ?? task.lastTool,
    summary: (frame.summary as string | null) ?? task.summary,
    tokens: usage.total_tokens ?? task.tokens,
    toolUses: usage.tool_uses ?? task.toolUses,
    durationMs: usage.duration_ms ?? task.durationMs
  })
}

function applyOutput (state: Conversation, frame: Frame) {
  const id = String(frame.tool_use_id)
  const tool = state.tools.get(id)
  if (tool && tool.state !== 'running' && tool.state !== 'preparing') return
  const output = (tool?.output ?? '') + String(frame.text ?? '')
  const extra = Math.max(0, output.length - MAX_OUTPUT)
  updateTool(state, id, {
    output: output.slice(extra),
    omittedBytes: (tool?.omittedBytes ?? 0) + Number(frame.omitted_bytes ?? 0) + extra
  })
}

function applyProgress (state: Conversation, frame: Frame) {
  const id = String(frame.tool_use_id)
  const progress = frame.progress as { done?: number, total?: number, message?: string } | null | undefined
  if (!progress) return
  const count = progress.total ? `${progress.done ?? 0} of ${progress.total}` : ''
  updateTool(state, id, { progress: [progress.message, count].filter(Boolean).join(' · ') })
}

interface StreamEvent {
  type: string
  index?: number
  message?: { id?: string }
  content_block?: Block
  delta?: { type?: string, text?: string, thinking?: string, partial_json?: string }
}

function applyStream (state: Conversation, frame: Frame) {
  const event = frame.event as StreamEvent
  const parent = (frame.parent_tool_use_id as string | null | undefined) ?? null
  const slot = parent ?? MAIN
  if (event.type === 'message_start') {
    const id = event.message?.id ?? ''
    if (state.live.get(slot)?.id === id) return
    state.live.set(slot, { id, parent, blocks: [] })
    state.status = null
    return
  }
  const index = event.index
  if (index === undefined) return
  if (event.type === 'content_block_start' && event.content_block) startBlock(state, slot, index, event.content_block)
  const message = state.live.get(slot)
  const block = message?.blocks[index]
  if (!message || !block) return
  if (event.type === 'content_block_stop') setBlock(state, slot, message, index, { ...block, done: true })
  if (event.type === 'content_block_delta') {
    const delta = event.delta ?? {}
    const text = block.text + (delta.text ?? delta.thinking ?? delta.partial_json ?? '')
    setBlock(state, slot, message, index, { ...block, text })
  }
}

function startBlock (state: Conversation, slot: string, index: number, content: Block) {
  const message = state.live.get(slot)
  if (!message || message.blocks[index]) return
  const key = `${message.id}:${index}`
  const kind = content.type.endsWith('tool_use') ? 'tool' : content.type === 'thinking' ? 'thinking' : 'text'
  const durable = (state.blocks.get(message.id) ?? 0) > index
  const block: LiveBlock = {
    kind,
    key,
    text: content.text ?? content.thinking ?? '',
    toolId: content.id ?? '',
    name: content.name ?? '',
    done: durable
  }
  if (durable) block.key = ''
  setBlock(state, slot, message, index, block)
}

function setBlock (state: Conversation, slot: string, message: LiveMessage, index: number, block: LiveBlock) {
  const blocks = [...message.blocks]
  blocks[index] = block
  const changed = { ...message, blocks }
  state.live.set(slot, changed)
}

/** Takes the live block out of what is shown, because its durable form has come. */
export function takeLiveBlock (state: Conversation, parent: string | null, messageId: string, index: number) {
  const slot = parent ?? MAIN
  const message = state.live.get(slot)
  if (!message) return
  if (message.id !== messageId) {
    state.live.delete(slot)
    return
  }
  const blocks = [...message.blocks]
  const block = blocks[index]
  if (block) blocks[index] = { ...block, key: '', done: true }
  state.live.set(slot, { ...message, blocks })
}

export function dropLive (state: Conversation, parent: string | null) {
  state.live.delete(parent ?? MAIN)
}

/** The blocks of a message that are shown: those whose durable form has not come. */
export function liveBlocks (state: Conversation, parent: string | null): LiveBlock[] {
  return (state.live.get(parent ?? MAIN)?.blocks ?? []).filter(block => block?.key)
}
