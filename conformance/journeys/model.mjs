// A model API on loopback that plays scripts: each prompt has its replies, and every request is kept.

import { createServer } from 'node:http'

/** A reply that calls a tool, with text before it if given. */
export const call = (name, input, text) => [...(text ? [{ type: 'text', text }] : []), { type: 'tool_use', name, input }]

export class ScriptedModel {
  constructor () {
    this.scripts = new Map()
    this.requests = []
    this.waiting = []
    this.ids = 0
    this.usage = { input_tokens: 100, output_tokens: 20 }
  }

  async start () {
    this.server = createServer((request, response) => this.handle(request, response))
    await new Promise(resolve => this.server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${this.server.address().port}`
    return this
  }

  stop () {
    this.server.closeAllConnections()
    this.server.close()
  }

  /** Replies to the requests that follow a prompt: a text, a list of blocks, or a function of the request. */
  on (prompt, ...replies) {
    this.scripts.set(prompt, replies)
  }

  /** Holds a reply until it is opened. */
  gate () {
    let open
    const opened = new Promise(resolve => { open = resolve })
    return { opened, open }
  }

  /** Resolves with the first request for which the condition holds, also one that came before. */
  request (condition) {
    const found = this.requests.find(condition)
    if (found) return Promise.resolve(found)
    return new Promise(resolve => this.waiting.push({ condition, resolve }))
  }

  async handle (request, response) {
    let body = ''
    for await (const part of request) body += part
    if (!request.url.startsWith('/v1/messages') || request.url.includes('count_tokens')) {
      response.writeHead(200, { 'content-type': 'application/json' })
      return response.end(JSON.stringify({ input_tokens: 10, data: [] }))
    }
    const asked = JSON.parse(body)
    this.requests.push(asked)
    for (const { condition, resolve } of this.waiting.splice(0)) {
      if (condition(asked)) resolve(asked)
      else this.waiting.push({ condition, resolve })
    }
    await this.play(asked, response)
  }

  async play (asked, response) {
    let reply = this.respond?.(asked) ?? this.replyTo(asked)
    if (typeof reply === 'function') reply = await reply(asked)
    const { blocks, gate, after = 1, pace = 0 } = Array.isArray(reply) ? { blocks: reply } : typeof reply === 'string' ? { blocks: [{ type: 'text', text: reply }] } : reply
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (type, fields) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`)
    const id = `msg_${++this.ids}`
    const calls = blocks.some(block => block.type === 'tool_use')
    send('message_start', { message: { id, type: 'message', role: 'assistant', model: asked.model, content: [], stop_reason: null, stop_sequence: null, usage: { ...this.usage, output_tokens: 1 } } })
    let pieces = 0
    for (const [index, block] of blocks.entries()) {
      const text = block.type === 'text' ? block.text : block.type === 'thinking' ? block.thinking : JSON.stringify(block.input)
      const start = block.type === 'tool_use' ? { type: 'tool_use', id: block.id ?? `toolu_${this.ids}_${index}`, name: block.name, input: {} } : { type: block.type, [block.type]: '' }
      send('content_block_start', { index, content_block: start })
      for (const part of text.match(/[\s\S]{1,4000}/g)?.flatMap(part => part.length < 2000 ? part.match(/[\s\S]{1,24}/g) : [part]) ?? []) {
        if (gate && pieces === after) await gate.opened
        pieces++
        if (response.destroyed) return
        const delta = block.type === 'tool_use' ? { type: 'input_json_delta', partial_json: part } : block.type === 'thinking' ? { type: 'thinking_delta', thinking: part } : { type: 'text_delta', text: part }
        send('content_block_delta', { index, delta })
        if (pace) await new Promise(resolve => setTimeout(resolve, pace))
      }
      send('content_block_stop', { index })
    }
    if (gate && pieces <= after) await gate.opened
    send('message_delta', { delta: { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: this.usage })
    send('message_stop', {})
    response.end()
  }

  replyTo ({ messages }) {
    for (let index = messages.length - 1; index >= 0; index--) {
      const { role, content } = messages[index]
      if (role !== 'user') continue
      const texts = typeof content === 'string' ? [content] : content.filter(block => block.type === 'text').map(block => block.text)
      const said = texts.filter(text => !text.startsWith('<system'))
      if (!said.length) continue
      for (const [prompt, replies] of this.scripts) {
        if (!said.some(text => text.includes(prompt))) continue
        const step = messages.slice(index).filter(message => message.role === 'assistant').length
        return replies[Math.min(step, replies.length - 1)] ?? 'Done.'
      }
      return 'Done.'
    }
    return 'Done.'
  }
}

/** All texts of a request: what the model reads. */
export function textOf (request) {
  return JSON.stringify(request.messages)
}
