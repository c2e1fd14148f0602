package kafkaevent

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

func (c Config) setSASL(s *sarama.Config) error {
	if c.SASLMechanism == "" {
		if c.SASLUsername != "" || c.SASLPassword.IsSet() || c.SASLPasswordFile != "" {
			return errors.New("KAFKA_SASL_MECHANISM: is not set, and a name or password for it is")
		}
		return nil
	}
	switch mechanism := strings.ToUpper(c.SASLMechanism); mechanism {
	case sarama.SASLTypePlaintext:
	case sarama.SASLTypeSCRAMSHA256:
		s.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		s.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	default:
		return fmt.Errorf("KAFKA_SASL_MECHANISM: %q is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", mechanism)
	}
	password, err := c.saslPassword()
	if err != nil {
		return err
	}
	s.Net.SASL.Enable = true
	s.Net.SASL.Mechanism = sarama.SASLMechanism(strings.ToUpper(c.SASLMechanism))
	s.Net.SASL.User = c.SASLUsername
	s.Net.SASL.Password = password
	return nil
}

func (c Config) saslPassword() (string, error) {
	switch {
	case c.SASLUsername == "":
		return "", errors.New("KAFKA_SASL_USERNAME: is not set, and KAFKA_SASL_MECHANISM is")
	case !c.SASLPassword.IsSet() && c.SASLPasswordFile == "":
		return "", errors.New("KAFKA_SASL_PASSWORD: is not set, and KAFKA_SASL_MECHANISM is")
	case c.SASLPassword.IsSet() && c.SASLPasswordFile != "":
		return "", errors.New("KAFKA_SASL_PASSWORD: is set, and so is KAFKA_SASL_PASSWORD_FILE")
	case c.SASLPasswordFile == "":
		return c.SASLPassword.Reveal(), nil
	}
	text, err := os.ReadFile(c.SASLPasswordFile)
	if err != nil {
		return "", fmt.Errorf("KAFKA_SASL_PASSWORD_FILE: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// scramClient is one SCRAM conversation. It implements sarama's interface.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return fmt.Errorf("begin SCRAM: %w", err)
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
