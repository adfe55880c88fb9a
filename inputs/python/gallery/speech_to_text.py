"""Speech to text by a Whisper (Radford et al. 2022) of transformers, from the config.json in a folder, of mel spectra of one
length:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/speech_to_text.py:SpeechToText --model-config FOLDER \
        --data 'speech/train*.h5' --max-sentences 16 --save-dir runs/whisper
"""
import torch
from seq2seq import Seq2Seq
from transformers import AutoConfig, AutoModelForSpeechSeq2Seq

import hetseq


class SpeechToText(Seq2Seq):
    fields = {"audio": hetseq.Field(torch.float32, (None, None)), "labels": hetseq.Ragged(torch.int64, minimum=0)}

    def model(self, config):
        return AutoModelForSpeechSeq2Seq.from_config(AutoConfig.from_pretrained(config.model_config))

    def inputs(self, batch):
        return {"input_features": batch["audio"]}
