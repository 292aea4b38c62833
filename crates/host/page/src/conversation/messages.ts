// Messages of the conversation: prompts, replies of the model, tool calls and their results.

import type { ApiMessage, Block, HostEvent } from '../contract'
import { applyResultToDetails } from './details'
import { pushItem, pushNotice, updateTool } from './items'
import { takeLiveBlock } from './live'
import { contentPictures, contentText, type Conversation, type Item } from './state'

export function applyAssistant (state: Conversation, event: HostEvent) {
  const { frame, seq, at } = event
  const message = frame.message as ApiMessage
  const parent = (frame.parent_tool_use_id as string | null | undefined) ?? null
  const id = message.id ?? frame.uuid ?? `event:${seq}`
  const blocks = Array.isArray(message.content) ? message.content : [{ type: 'text', text: message.content }]
  if (parent === null && message.usage?.input_tokens !== undefined) state.usage = message.usage
  for (const block of blocks) {
    const index = state.blocks.get(id) ?? 0
    state.blocks.set(id, index + 1)
    takeLiveBlock(state, parent, id, index)
    const key = `${id}:${index}`
    if (block.type === 'text') {
      if (block.text?.trim()) pushItem(state, parent, { kind: 'text', key, uuid: frame.uuid ?? '', text: block.text, streaming: false, at, dropped: false })
    } else if (block.type === 'thinking') {
      if (block.thinking?.trim()) pushItem(state, parent, { kind: 'thinking', key, text: block.thinking, streaming: false, dropped: false })
    } else if (block.type.endsWith('tool_use') && block.id) {
      pushToolUse(state, parent, key, block, event)
    }
  }
}

function pushToolUse (state: Conversation, parent: string | null, key: string, block: Block, { seq, at, cut }: HostEvent) {
  const id = block.id!
  const input = (block.input ?? {}) as Record<string, unknown>
  const known = state.tools.get(id)
  if (known?.seq) return
  updateTool(state, id, { name: block.name ?? '', input, parent, state: 'running', startedAt: at, seq, cutSeq: cut ? seq : 0, partial: '' })
  pushItem(state, parent, { kind: 'tool', key, id, dropped: false })
}

export function applyUser (state: Conversation, event: HostEvent) {
  const { frame, seq, at } = event
  const message = frame.message as ApiMessage
  const parent = (frame.parent_tool_use_id as string | null | undefined) ?? null
  const content = message.content
  const results = Array.isArray(content) ? content.filter(block => block.type === 'tool_result') : []
  for (const block of results) applyToolResult(state, block, event)
  if (results.length || parent !== null) return
  const text = contentText(content)
  if (frame.isSynthetic || frame.isMeta) {
    if (text.startsWith('[Request interrupted')) return
    if (text.trim() && !text.startsWith('<')) pushNotice(state, `event:${seq}`, 'info', text)
    return
  }
  pushPrompt(state, frame.uuid ?? `event:${seq}`, text, contentPictures(content), null, at)
}

/** Adds a prompt, or completes the one with this uuid that is there already. */
export function pushPrompt (state: Conversation, uuid: string, text: string, pictures: string[], by: string | null, at: number, uploads: string[] = []) {
  for (let index = state.items.length - 1; index >= 0; index--) {
    const item = state.items[index]!
    if (item.kind !== 'prompt' || item.uuid !== uuid) continue
    if (pictures.length > item.pictures.length) state.items[index] = { ...item, pictures }
    return
  }
  const item: Item = { kind: 'prompt', key: uuid, uuid, text, pictures, uploads, by, at, dropped: false }
  state.items.push(item)
}

function applyToolResult (state: Conversation, block: Block, { frame, seq, at, cut }: HostEvent) {
  const id = block.tool_use_id ?? ''
  const tool = state.tools.get(id)
  const meta = frame.tool_use_result
  const denied = isDenied(state, id)
  updateTool(state, id, {
    result: contentText(block.content),
    pictures: contentPictures(block.content),
    meta: meta !== null && typeof meta === 'object' ? meta as Record<string, unknown> : null,
    state: block.is_error ? (denied ? 'denied' : 'failed') : 'done',
    endedAt: at,
    cutSeq: cut ? seq : tool?.cutSeq ?? 0,
    progress: ''
  })
  applyResultToDetails(state, id)
}

function isDenied (state: Conversation, toolId: string): boolean {
  for (const card of state.cards.values()) if (card.request.tool_use_id === toolId && card.state === 'denied') return true
  return false
}
