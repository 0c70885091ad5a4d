"""Writes a tiny language model with random weights: enough for a real inference server to load and to run.

Its tokens are the bytes, so it says nonsense, but always the same, and every server that reads GGUF runs it.
"""

import sys

import gguf
import numpy

# Long enough for a stream that is still going on when its caller leaves.
CONTEXT = 65536
WIDTH = 32
HEADS = 2
INNER = 64
LAYERS = 1
# Neither a system prompt nor tools: the content of the messages, in a row.
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "


def vocabulary():
    tokens = ["<unk>", "<s>", "</s>"]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [gguf.TokenType.BYTE] * 256
    # A few words, so that an answer has readable ones.
    tokens += ["▁" + word for word in ("gate", "river", "lock", "water", "stream", "level", "open", "shut")]
    types += [gguf.TokenType.NORMAL] * 8
    return tokens, types


def main():
    tokens, types = vocabulary()
    random = numpy.random.default_rng(7)
    writer = gguf.GGUFWriter(sys.argv[1], "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)

    def tensor(name, *shape):
        writer.add_tensor(name, random.standard_normal(shape).astype(numpy.float32))

    def ones(name):
        writer.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    ones("output_norm.weight")
    # What cannot be read, and the end, is never the likeliest token: it says something until it is told to stop.
    output = random.standard_normal((len(tokens), WIDTH)).astype(numpy.float32)
    readable = [3 + byte for byte in range(ord("a"), ord("z") + 1)] + list(range(3 + 256, len(tokens)))
    output[[token for token in range(len(tokens)) if token not in readable]] = 0
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        ones(f"blk.{layer}.attn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        ones(f"blk.{layer}.ffn_norm.weight")
        tensor(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        tensor(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        tensor(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
